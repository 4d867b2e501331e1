"""Lists of outcomes as teachers have them become course files: texts of all kinds, PDF copies, tables, encodings."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipeline.content.fields import MAX_REF
from pipeline.errors import CatalogueError
from pipeline.lessons.catalogue import read_course
from pipeline.lessons.syllabus.outcome_list import OutcomeList, read_list
from pipeline.lessons.syllabus.tree import ListItem

#: A tree as tests write it: group → outcomes, each a text or (text, its points).
Tree = dict[str, list[str | tuple[str, list[str]]]]


def understood(tmp_path: Path, text: str | bytes, end: str = ".txt", encoding: str = "") -> OutcomeList:
    path = tmp_path / f"outcomes{end}"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = read_list(path, "science", "ks3", encoding=encoding)
    # Whatever was understood, the file passes the check that a run makes.
    written = tmp_path / "science-ks3.yaml"
    written.write_text(found.text, encoding="utf-8")
    course = read_course(written)
    assert [group.title for group in course.groups] == [group.text for group in found.groups]
    assert [[point.text for point in out.points] for out in course.outcomes()] == [
        [point.text for point in out.below] for group in found.groups for out in group.below
    ]
    return found


def tree(groups: Sequence[ListItem]) -> Tree:
    return {group.text: [_outcome(out) for out in group.below] for group in groups}


def _outcome(out: ListItem) -> str | tuple[str, list[str]]:
    text, points = f"{out.code} {out.text}".strip(), [point.text for point in out.below]
    return text if points == [out.text] else (text, points)


#: What a text is an example of; the text; what is understood.
TEXTS: list[tuple[str, str, Tree]] = [
    ("bullets", "• Describe cells\n• Explain osmosis;\n", {"Learning outcomes": ["Describe cells", "Explain osmosis"]}),
    ("bullets from a PDF, alone on their lines", "Cells\n\uf0b7\nDescribe cells\n\uf0b7\nExplain osmosis in\nplants\n",
     {"Cells": ["Describe cells", "Explain osmosis in plants"]}),
    ("bullets of two kinds, indents lost", "Cells\n• Parts\no nucleus\no wall\n• Transport\no osmosis\n",
     {"Cells": [("Parts", ["nucleus", "wall"]), ("Transport", ["osmosis"])]}),
    ("several bullets on a line", "Cells\n♦ parts ♦ walls\n♦ osmosis\n", {"Cells": ["Parts", "Walls", "Osmosis"]}),
    ("numbers", "1. Describe cells\n2) Explain osmosis\n10. Draw\n",
     {"Learning outcomes": ["1 Describe cells", "2 Explain osmosis", "10 Draw"]}),
    ("numbers alone on their lines", "1\nDescribe cells\n2\nExplain osmosis\n3\nDraw plants\n",
     {"Learning outcomes": ["1 Describe cells", "2 Explain osmosis", "3 Draw plants"]}),
    ("letters alone on their lines", "A.\nDescribe cells\nB.\nExplain osmosis\n",
     {"Learning outcomes": ["A Describe cells", "B Explain osmosis"]}),
    ("a bullet that is a letter", "Chance\n§ toss coins\n§ roll dice\n", {"Chance": ["Toss coins", "Roll dice"]}),
    ("a word broken where a page ends", "Rulers\n• explain why kings quar-\n\nrelled\n• name them\n",
     {"Rulers": ["Explain why kings quarrelled", "Name them"]}),
    ("a sentence that begins and is broken within an item",
     "Cells\n• describe the parts as they are seen with a light microscope.\nDraw them\nwith a pencil\n• explain\n",
     {"Cells": ["Describe the parts as they are seen with a light microscope. Draw them with a pencil", "Explain"]}),
    ("numbers of three parts before one of two", "Cells\n1.1.1 wall\n1.1.2 nucleus\n1.2 Energy\n1.2.1 heat\n",
     {"Cells": ["1.1.1 Wall", "1.1.2 Nucleus", ("1.2 Energy", ["heat"])]}),
    ("a bullet further to the left", "Cells\n    • wall\n– nucleus\n    • parts\n",
     {"Cells": ["Wall", ("Nucleus", ["parts"])]}),
    ("letters below numbers", "1. Cells\n (a) plant\n (b) animal\n  (i) human\n  (ii) dog\n2. Osmosis\n a) gas\n",
     {"Learning outcomes": [("1 Cells", ["plant", "animal: human", "animal: dog"]), ("2 Osmosis", ["gas"])]}),
    ("numbers of two parts", "1 Cells\n1.1 Describe cells\n1.2 Explain\n2 Energy\n2.1 Calculate 1.5\n",
     {"Cells": ["1.1 Describe cells", "1.2 Explain"], "Energy": ["2.1 Calculate 1.5"]}),
    ("numbers of three parts", "4.1 Cells\nCells are units.\n4.1.1 Parts\n4.1.1.1 nucleus\n4.1.1.2 wall\n4.2 Energy\n"
     "4.2.1 Heat\n4.2.1.1 conduction\n",
     {"Cells": [("4.1.1 Parts", ["nucleus", "wall"])], "Energy": [("4.2.1 Heat", ["conduction"])]}),
    ("printed codes", "B1 Cells\nB1.1 Describe cells\nB1.2 Explain\nB2 Energy\nB2.1 Calculate\n",
     {"Cells": ["B1.1 Describe cells", "B1.2 Explain"], "Energy": ["B2.1 Calculate"]}),
    ("codes of the Common Core", "Fractions\n3.NF.A.1 Understand a fraction as a quantity of parts\n3.NF.A.2 Place a "
     "fraction on a number line\nMeasurement\n3.MD.A.1 Tell and write time to the nearest minute\n",
     {"Fractions": ["3.NF.A.1 Understand a fraction as a quantity of parts",
                    "3.NF.A.2 Place a fraction on a number line"],
      "Measurement": ["3.MD.A.1 Tell and write time to the nearest minute"]}),
    ("headings in words", "Unit 1: Cells\nTopic 1.1 Parts\nPupils should be able to:\n• Name parts\nUnit 2: Energy\n"
     "Topic 2.1 Heat\n• Explain it\n",
     {"Unit 1: Cells": [("Topic 1.1 Parts", ["Name parts"])], "Unit 2: Energy": [("Topic 2.1 Heat", ["Explain it"])]}),
    ("headings in capitals", "CELLS\n- one\n- two\nHEAT AND COLD\n- three\n",
     {"CELLS": ["One", "Two"], "HEAT AND COLD": ["Three"]}),
    ("no marks, a heading over each block", "Cells\n\nDescribe cells\nExplain\n\nHeat\n\nDraw heat\nFeel heat\n",
     {"Cells": ["Describe cells", "Explain"], "Heat": ["Draw heat", "Feel heat"]}),
    ("no marks, headings with colons", "Cells:\nDescribe cells\nExplain\nHeat:\nDraw\n",
     {"Cells": ["Describe cells", "Explain"], "Heat": ["Draw"]}),
    ("no marks at all", "Describe the Cold War\nWW2 and its causes\n",
     {"Learning outcomes": ["Describe the Cold War", "WW2 and its causes"]}),
    ("Roman numbers and capitals", "I. Cells\n A. Parts\n  1. nucleus\n  2. wall\n B. Uses\n  1. food\nII. Heat\n"
     " A. Cold\n  1. ice\n",
     {"Cells": [("A Parts", ["nucleus", "wall"]), ("B Uses", ["food"])], "Heat": [("A Cold", ["ice"])]}),
    ("labels that come again under each heading, and what is for teachers",
     "Number\nStatutory requirements\nPupils should be taught to:\n• read numbers\n• round them\nNotes and guidance\n"
     "Pupils use counters.\nAlgebra\nStatutory requirements\nPupils should be taught to:\n• use formulae\nNotes and "
     "guidance (non-statutory)\n• letters for numbers\nResources of the Earth\n• name ores\n",
     {"Number": ["Read numbers", "Round them"], "Algebra": ["Use formulae"], "Resources of the Earth": ["Name ores"]}),
    ("lists that begin at 1 again below numbers of two parts",
     "1 Cells\n1.1 Microscopes\nCandidates should be able to:\n1 draw cells\n2 measure cells\n1.2 Parts\n1 name parts, "
     "limited to:\n• nucleus\n• wall\n2 Heat\n2.1 Metals\n1 compare metals\n",
     {"Cells – Microscopes": ["1 Draw cells", "2 Measure cells"],
      "Cells – Parts": [("1 Name parts, limited to", ["nucleus", "wall"])],
      "Heat – Metals": ["1 Compare metals"]}),
    ("codes alone on their lines", "7.RP.A.1\nCompute rates, also those of\nareas.\n\n7.RP.A.2\nName relations.\n"
     "a. Decide whether.\nb. Find the rate.\n",
     {"Learning outcomes": ["7.RP.A.1 Compute rates, also those of areas",
                            ("7.RP.A.2 Name relations", ["Decide whether", "Find the rate"])]}),
    ("a name at the end of a line, no heading", "Chance\nPupils should be taught to:\n• list the outcomes of events in "
     "tables, in grids and in\nVenn diagrams\n• find chances\n",
     {"Chance": ["List the outcomes of events in tables, in grids and in Venn diagrams", "Find chances"]}),
    ("a year at the end of a line, no page number", "Railways\n1.1 Explain what changed between 1830 and\n1870\n"
     "1.2 Describe the Reform Act of\n1832.\n1.3 Name three lines\nPage 2 of 4\n",
     {"Railways": ["1.1 Explain what changed between 1830 and 1870", "1.2 Describe the Reform Act of 1832",
                   "1.3 Name three lines"]}),
    ("headings with a sentence before their lists", "Ratios 7.RP\nAnalyze and use them.\n1. Compute rates\n"
     "Numbers 7.NS\nExtend what you know of\nfractions.\n1. Add numbers\nUse it again.\n2. Divide\n",
     {"Ratios 7.RP": ["1 Compute rates"], "Numbers 7.NS": ["1 Add numbers", "2 Divide"]}),
    ("lines of one label in each unit, which are no headings",
     "Holidays\nVocabulary: countries\n- Say where you went\nGrammar: perfect tense\n- Say what you did\nHome\n"
     "Vocabulary: rooms\n- Describe a room\nGrammar: prepositions\n- Say where things are\n",
     {"Holidays": ["Vocabulary: countries", "Say where you went", "Grammar: perfect tense", "Say what you did"],
      "Home": ["Vocabulary: rooms", "Describe a room", "Grammar: prepositions", "Say where things are"]}),
    ("headings of one label", "Grammar: perfect tense\n• form it\nGrammar: the past\n• use it\n",
     {"Grammar: perfect tense": ["Form it"], "Grammar: the past": ["Use it"]}),
    ("headings with a label that counts", "Topic: Holidays\nGrammar: tenses\n• Say where they are\nTopic: Home\n"
     "Grammar: cases\n• Describe it\n",
     {"Topic: Holidays": ["Grammar: tenses", "Say where they are"], "Topic: Home": ["Grammar: cases", "Describe it"]}),
    ("labels below numbered units and between numbered outcomes",
     "Unit 1: Moi\n1.1 Say who you are and ask others\nGrammar: être and avoir in all persons of the present\n"
     "Vocabulary: family\nUnit 2: En ville\nGrammar: the imperative\nVocabulary: shops\n2.1 Buy a ticket\n",
     {"Unit 1: Moi": ["1.1 Say who you are and ask others", "Grammar: être and avoir in all persons of the present",
                      "Vocabulary: family"],
      "Unit 2: En ville": ["Grammar: the imperative", "Vocabulary: shops", "2.1 Buy a ticket"]}),
    ("numbered units with unmarked lines below each",
     "Spanish 1\n1. Mi familia\nGrammar: possessives\nVocabulary: pets\nDescribe your family\n2. Mi casa\n"
     "Grammar: estar\nVocabulary: rooms\nDescribe your house\n",
     {"Mi familia": ["Grammar: possessives", "Vocabulary: pets", "Describe your family"],
      "Mi casa": ["Grammar: estar", "Vocabulary: rooms", "Describe your house"]}),
    ("headings over headings",
     "Year 7\nNumber and algebra\nPlace value\nUse index notation (ACMNA149)\nUse square roots (ACMNA150)\n"
     "Real numbers\nCompare fractions (ACMNA152)\nMeasurement\nShape\nDraw views of prisms (ACMMG161)\n",
     {"Number and algebra – Place value": ["ACMNA149 Use index notation", "ACMNA150 Use square roots"],
      "Number and algebra – Real numbers": ["ACMNA152 Compare fractions"],
      "Measurement – Shape": ["ACMMG161 Draw views of prisms"]}),
    ("codes on lines of their own, below clusters",
     "Grade 8\n\nWork with radicals and exponents.\nCCSS.MATH.CONTENT.8.EE.A.1\nKnow the properties of exponents.\n"
     "CCSS.MATH.CONTENT.8.EE.A.2\nUse roots.\nUnderstand the connections between lines and linear equations.\n"
     "CCSS.MATH.CONTENT.8.EE.B.5\nGraph relationships.\nCCSS.MATH.CONTENT.8.EE.B.6\nUse similar triangles.\n"
     "CCSS.MATH.CONTENT.8.EE.B.6.A\nDerive y = mx.\n",
     {"Work with radicals and exponents": ["CCSS.MATH.CONTENT.8.EE.A.1 Know the properties of exponents",
                                           "CCSS.MATH.CONTENT.8.EE.A.2 Use roots"],
      "Understand the connections between lines and linear equations": [
          "CCSS.MATH.CONTENT.8.EE.B.5 Graph relationships",
          ("CCSS.MATH.CONTENT.8.EE.B.6 Use similar triangles", ["Derive y = mx"])]}),
    ("all that comes below a code on its own line",
     "Topic 1: Algebra (19 hours)\nContent\tGuidance\nSL 1.1\nUse numbers.\nSL 1.2\nSequences and series.\n"
     "Use of sigma notation.\nTopic 2: Functions\nSL 2.1\nForms of the equation of a line.\n",
     {"Topic 1: Algebra": ["SL 1.1 Use numbers", ("SL 1.2 Sequences and series", ["Use of sigma notation"])],
      "Topic 2: Functions": ["SL 2.1 Forms of the equation of a line"]}),
    ("two columns of a page, and an item (c)",
     "Topic             Learning outcomes\n                  Learners should be able to:\n"
     "1 Atoms           (a) describe the structure of the atom in words\n                      of science\n"
     "                  (b) define mass\n                  (c) explain isotopes\n"
     "2 Bonding         (a) draw molecules\n                  (b) compare them\n3 Rates\n",
     {"Learning outcomes": [
         ("1 Atoms", ["describe the structure of the atom in words of science", "define mass", "explain isotopes"]),
         ("2 Bonding", ["draw molecules", "compare them"]), "3 Rates"]}),
    ("labels within lists of numbers",
     "1 Cells\n1.1 Parts\nCore\n1 Draw cells\n2 Name parts\nSupplement\n3 Explain ribosomes\n1.2 Uses\nCore\n"
     "1 State one\nSupplement\n2 Explain it\n2 Heat\n2.1 Metals\nCore\n1 Compare metals\n",
     {"Cells": [("1.1 Parts", ["Draw cells", "Name parts", "Explain ribosomes"]),
                ("1.2 Uses", ["State one", "Explain it"])],
      "Heat": [("2.1 Metals", ["Compare metals"])]}),
    ("one long item below each heading", "Vectors in 3D\n- find the angle between two vectors with the scalar product\n"
     "Trigonometry\n- prove identities with the addition formulae\nProbability\n- use trees\n",
     {"Vectors in 3D": ["Find the angle between two vectors with the scalar product"],
      "Trigonometry": ["Prove identities with the addition formulae"], "Probability": ["Use trees"]}),
    ("no marks, small letters", "Cells\n\ndescribe cells\nexplain what osmosis does\n\nHeat\n\ndraw\nfeel heat\n",
     {"Cells": ["Describe cells", "Explain what osmosis does"], "Heat": ["Draw", "Feel heat"]}),
    ("no marks, small letters below a long heading", "Unit 1: The structure and the work of cells and of tissues\n"
     "describe cells\nexplain osmosis\n",
     {"Unit 1: The structure and the work of cells and of tissues": ["Describe cells", "Explain osmosis"]}),
    ("topics alone", "Topic 1: Cells\nTopic 2: Heat\n", {"Learning outcomes": ["Topic 1: Cells", "Topic 2: Heat"]}),
    ("unmarked sentences as wide as a page",
     "Chemical reactions: equations and what they say.\nAcids and bases: definitions and properties.\n",
     {"Learning outcomes": ["Chemical reactions: equations and what they say",
                            "Acids and bases: definitions and properties"]}),
    ("outcomes with their pages", "Theme 1: Markets\n1.1 Explain choice ....... 4\n1.2 Draw curves ........ 6\n"
     "Theme 2: The UK\n2.1 Measure growth ....... 14\n",
     {"Theme 1: Markets": ["1.1 Explain choice", "1.2 Draw curves"], "Theme 2: The UK": ["2.1 Measure growth"]}),
    ("bullets of three kinds below headings stay in order",
     "Programming\n•\tUse repetition\no\twork with variables\n▪\tnumbers\n▪\ttext\no\toutput\nNetworks\n"
     "•\tUnderstand networks\no\tservices\n•\tUse searches\n",
     {"Programming": [("Use repetition", ["work with variables: numbers", "work with variables: text", "output"])],
      "Networks": [("Understand networks", ["services"]), "Use searches"]}),
    ("a heading over two lines, and names of columns", "Unit 1: Business\nLearning aims\nIn this unit you will:\n"
     "Learning aim A: Explore the features of some businesses and\nwhat makes them successful\n• Sectors\n• Aims\n"
     "Learning aim B: Markets\n• Prices\n",
     {"Learning aim A: Explore the features of some businesses and what makes them successful": ["Sectors", "Aims"],
      "Learning aim B: Markets": ["Prices"]}),
    ("Spanish with minus signs", "MATEMÁTICAS\nBLOQUE A. SENTIDO\n1. Conteo.\n− Estrategias.\n− Adaptación.\n"
     "BLOQUE B. MEDIDA\n1. Magnitud.\n− Atributos.\n",
     {"BLOQUE A. SENTIDO": [("1 Conteo", ["Estrategias", "Adaptación"])],
      "BLOQUE B. MEDIDA": [("1 Magnitud", ["Atributos"])]}),
    ("Scottish Gaelic", "Co-theacsa 1: Obair\nBu chòir do sgoilearan a bhith comasach air:\n• bruidhinn\n"
     "Co-theacsa 2: Sgoil\nBu chòir do sgoilearan a bhith comasach air:\n• sgrìobhadh\n",
     {"Co-theacsa 1: Obair": ["Bruidhinn"], "Co-theacsa 2: Sgoil": ["Sgrìobhadh"]}),
    ("French", "Thème 1 : Moi\n• se présenter\n• parler de ses ani-\nmaux\n",
     {"Thème 1 : Moi": ["Se présenter", "Parler de ses animaux"]}),
    ("Chinese", "第一单元 细胞\n1. 描述细胞\n2. 解释扩散\n第二单元 能量\n1. 计算\n",
     {"第一单元 细胞": ["1 描述细胞", "2 解释扩散"], "第二单元 能量": ["1 计算"]}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), [case[1:] for case in TEXTS], ids=[case[0] for case in TEXTS])
def test_text_is_understood(tmp_path: Path, text: str, wanted: Tree) -> None:
    assert list(tree(understood(tmp_path, text).groups).items()) == list(wanted.items())
    # The same from other systems.
    assert tree(understood(tmp_path, text.replace("\n", "\r\n").encode("utf-16")).groups) == wanted


MARKDOWN: list[tuple[str, Tree]] = [
    ("# KS3\n\n## Cells\n\n- **Name** the [parts](http://x)\n  - wall\n  - nucleus\n\n## Heat\n\n1. Draw\n1. Feel\n",
     {"Cells": [("Name the parts", ["wall", "nucleus"])], "Heat": ["1 Draw", "1 Feel"]}),
    ("Cells\n=====\n\n- [ ] one\n- [x] two\n\nHeat\n====\n\n* three\n", {"Cells": ["One", "Two"], "Heat": ["Three"]}),
    ("**Cells**\n\n* one\n\n__Heat__\n\n* two\n", {"Cells": ["One"], "Heat": ["Two"]}),
    ("# Year 10\n\n## Coasts\n\nFieldwork in week 4.\n\n| Lesson | Objective |\n|:-:|---|\n"
     "| 1 | Describe **two** waves |\n| 2 | Explain a spit \\| bar |\n\n"
     "## Rivers\n\n| Objective | Page |\n|---|---|\n| Explain waterfalls | 3 |\n\n"
     "## Assessment\n\n- End of unit test\n",
     {"Coasts": ["Describe two waves", "Explain a spit | bar"], "Rivers": ["Explain waterfalls"]}),
    ("## Cells\n\n- one\n- two\n\n| Paper | Marks |\n|---|---|\n| 1 | 40 |\n| 2 | 60 |\n", {"Cells": ["One", "Two"]}),
    ("| Topic | Outcome |\n|---|:--|\n| Cells | one |\n| | two |\n| Heat | three |\n",
     {"Cells": ["One", "Two"], "Heat": ["Three"]}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), MARKDOWN)
def test_markdown_is_understood(tmp_path: Path, text: str, wanted: Tree) -> None:
    assert list(tree(understood(tmp_path, text, ".md").groups).items()) == list(wanted.items())


#: As it is copied out of a PDF viewer: a head and a page number on each page, lines broken where the page ends.
PDF = """Science – key stage 3
Contents
Cells and organisation ........................ 2
Biology
Cells and organisation

\uf0b7 cells as the fundamental unit of living organisms, including how to observe, interpret
and record cell structure using a light microscope
\uf0b7 the functions of the cell wall, cell membrane and cyto-
plasm, and their ﬁnal size
National curriculum 2
\fThe skeletal and muscular systems
\uf0b7 the dependence of almost all life on Earth on photosynthetic organisms, such as
plants and algae, to build the organic

National curriculum 3
\fmolecules that are an essential energy store; and
\uf0b7 non-
metals in bones.
© Crown copyright
"""


def test_copy_of_a_pdf_is_understood_and_what_was_done_is_told(tmp_path: Path) -> None:
    found = understood(tmp_path, PDF)
    assert tree(found.groups) == {
        "Cells and organisation": [
            "Cells as the fundamental unit of living organisms, including how to observe, interpret and record cell "
            "structure using a light microscope",
            "The functions of the cell wall, cell membrane and cytoplasm, and their final size",
        ],
        "The skeletal and muscular systems": [
            "The dependence of almost all life on Earth on photosynthetic organisms, such as plants and algae, to "
            "build the organic molecules that are an essential energy store",
            "Non-metals in bones",
        ],
    }
    notes = "\n".join(found.notes)
    for said in ("table of contents were left out (line 3)", "copyright", '"National curriculum 2"', "cytoplasm"):
        assert said in notes
    assert [out.line for group in found.groups for out in group.below] == [7, 9, 13, 18]


#: A table, the end of its name, what is understood.
TABLES: list[tuple[str, str, Tree]] = [
    ("Topic,Learning outcome\nCells,Describe\nCells,Explain\nHeat,Draw\n", ".csv",
     {"Cells": ["Describe", "Explain"], "Heat": ["Draw"]}),
    ("Thema;Lernziel;Nr.\nZelle;Beschreiben;1.1\n;Erklären;1.2\nWärme;Zeichnen;2.1\n", ".csv",
     {"Zelle": ["1.1 Beschreiben", "1.2 Erklären"], "Wärme": ["2.1 Zeichnen"]}),
    ("sep=|\nUnit|Objective\nCells|one\n", ".csv", {"Cells": ["One"]}),
    ("Strand\tContent description\tElaborations\nNumber\tCount to 10\tfingers; beads\n", ".tsv",
     {"Number": [("Count to 10", ["fingers", "beads"])]}),
    ('\ufeffUnit,Outcome\nCells,"Describe, in words,\nthe cell"\n"Heat","• Draw\n• Feel"\n', ".csv",
     {"Cells": ["Describe, in words, the cell"], "Heat": ["Draw", "Feel"]}),
    ("Year 9,,\n,,\nUnit,No,Learning Objective\nCells,1,Describe\nCells,2,Explain\n", ".csv",
     {"Cells": ["1 Describe", "2 Explain"]}),
    ("Unit code,Unit,Topic,Ref,Statement\nU1,Cells,Parts,1.1,Wall\nU1,Cells,Parts,1.2,Nucleus\nU2,Heat,Cold,2.1,Ice\n",
     ".csv", {"Cells": [("Parts", ["Wall", "Nucleus"])], "Heat": [("Cold", ["Ice"])]}),
    ("Area,Key area,Content\nUniverse,Motion,graphs; falling objects\nWaves,Light,refraction\n", ".csv",
     {"Universe": [("Motion", ["graphs", "falling objects"])], "Waves": [("Light", ["refraction"])]}),
    ("Outcome,Assessment standard\nManage money,budget\nManage money,savings\nMeasure,length\n", ".csv",
     {"Learning outcomes": [("Manage money", ["budget", "savings"]), ("Measure", ["length"])]}),
    ("Topic,Students should be able to …,Teacher guidance\nCells,Describe,x\n", ".csv", {"Cells": ["Describe"]}),
    ("Cells,1.1,Describe the structure of cells\nCells,1.2,Explain osmosis\nHeat,2.1,Describe how heat flows\n", ".csv",
     {"Cells": ["1.1 Describe the structure of cells", "1.2 Explain osmosis"],
      "Heat": ["2.1 Describe how heat flows"]}),
    ('\ufeffStunden;Kompetenzen;Nr.;Themenfeld\n4;"Die Schülerinnen und Schüler können\n- zeichnen\n'
     '- messen";1;Geraden\n2;"Nullstellen ""exakt"" berechnen.";2;Geraden\n6;Winkel messen;3;Dreiecke\n', ".csv",
     {"Geraden": ["1 Zeichnen", "Messen", '2 Nullstellen "exakt" berechnen'], "Dreiecke": ["3 Winkel messen"]}),
    ('Benchmarks\tExperiences and Outcomes\tCode\tOrganiser\n"• Rounds.\n• Estimates."\tI can round.\tMNU 3-01a\t'
     'Rounding\n• Recalls facts.\tI can multiply.\tMNU 3-03a\tProcesses\n• Adds.\tI can add.\tMNU 3-03b\tProcesses\n',
     ".txt",
     {"Rounding": [("MNU 3-01a I can round", ["Rounds", "Estimates"])],
      "Processes": [("MNU 3-03a I can multiply", ["Recalls facts"]), ("MNU 3-03b I can add", ["Adds"])]}),
    ("Learning outcomes\nDescribe\nExplain\n", ".csv", {"Learning outcomes": ["Describe", "Explain"]}),
    ("outcome\ndescribe the cell\nexplain osmosis\n", ".csv",
     {"Learning outcomes": ["Describe the cell", "Explain osmosis"]}),
    ('Unit,Outcome\nCells,"Describe\nHeat,Draw\n', ".csv", {"Cells": ["Describe"], "Heat": ["Draw"]}),
    ("Unit\tOutcome\nCells\tDescribe\nHeat\tDraw\n", ".txt", {"Cells": ["Describe"], "Heat": ["Draw"]}),
    ("Topic,Points\nCells,walls\nHeat,ice\n", ".csv", {"Cells": ["Walls"], "Heat": ["Ice"]}),
    ("#,Unit,Outcome\n1,Cells,Describe\n2,Cells,Draw\n", ".csv", {"Cells": ["1 Describe", "2 Draw"]}),
    ("Unit,Outcome\rCells,Describe\r", ".csv", {"Cells": ["Describe"]}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "end", "wanted"), TABLES)
def test_table_is_understood(tmp_path: Path, text: str, end: str, wanted: Tree) -> None:
    assert list(tree(understood(tmp_path, text, end).groups).items()) == list(wanted.items())


def test_rows_of_an_only_column_are_told_by_their_lines(tmp_path: Path) -> None:
    found = understood(tmp_path, 'Objective\nDescribe\n"Explain\nthis"\n\nDraw\n', ".csv")
    told = [(out.text, out.line) for out in found.groups[0].below]
    assert told == [("Describe", 2), ("Explain this", 3), ("Draw", 6)]


def test_table_says_which_column_was_taken_for_what(tmp_path: Path) -> None:
    found = understood(
        tmp_path, "Unit code,Unit,Ref,Standard,Notes\nU1,Cells,1.1,Describe,x\n,,,,only a note\n", ".csv"
    )
    assert 'outcomes from column "Standard"; groups from "Unit"; codes from "Ref"' in found.notes[0]
    assert 'Not used: "Notes".' in found.notes[0]
    assert "Rows without an outcome were left out (line 3)" in found.notes[1]
    assert (found.groups[0].code, found.groups[0].below[0].code) == ("U1", "1.1")


@pytest.mark.parametrize(
    ("raw", "encoding", "found"),
    [
        ("• Explain “cafés” – naïve".encode("cp1252"), "", "cp1252"),
        ("• Explain cafés".encode("utf-8-sig"), "", "utf-8-sig"),
        ("• Explain cafés".encode("utf-16"), "", "utf-16"),
        ("Explain cafés".encode("utf-16-le"), "", "utf-16-le"),
        ("Explain cafés".encode("utf-16-be"), "", "utf-16-be"),
        ("1. Описать клетку".encode("cp1251"), "cp1251", "cp1251"),
    ],
)
def test_encoding_is_found_or_named(tmp_path: Path, raw: bytes, encoding: str, found: str) -> None:
    read = understood(tmp_path, raw, encoding=encoding)
    assert read.encoding == found
    assert read.groups[0].below[0].text in ("Explain “cafés” – naïve", "Explain cafés", "Описать клетку")


@pytest.mark.parametrize(
    ("raw", "end", "code", "said"),
    [
        (b"%PDF-1.7", ".txt", "not_text", "is a PDF"),
        (b"PK\x03\x04", ".csv", "not_text", "Excel"),
        (b"a\0b", ".txt", "not_text", "is not text"),
        (b"text", ".docx", "not_text", "ends in .docx, wanted .csv"),
        (b"\n \n", ".txt", "no_outcomes", "no learning outcomes"),
        (b"# Heading\n", ".md", "no_outcomes", "no learning outcomes"),
        (b"Unit,Outcome\n", ".csv", "no_outcomes", "no learning outcomes"),
        (b"x" * 1_000_001, ".txt", "not_text", "larger than 1,000,000"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_way_out(
    tmp_path: Path, raw: bytes, end: str, code: str, said: str
) -> None:
    with pytest.raises(CatalogueError, match=said) as caught:
        understood(tmp_path, raw, end)
    assert caught.value.code == code
    assert caught.value.hint


def test_texts_too_long_for_a_course_file_become_points_and_repeats_are_told(tmp_path: Path) -> None:
    long = "Explain how cells grow and why. " * 20
    found = understood(tmp_path, f"- {long}\n- short\n- short\n")
    first = found.groups[0].below[0]
    assert " ".join(point.text for point in first.below) == long.strip()
    assert len(first.below) > 1
    assert any("longer than 400" in note for note in found.notes)
    assert "Line 3 repeats line 2; both were kept." in found.notes


def test_codes_that_are_printed_stay_and_ids_are_words(tmp_path: Path) -> None:
    found = understood(
        tmp_path, "Topic,Sub-topic,Ref,Standard\nNo,The wall,1.a,Describe\nNo,The wall,1.b,Draw\n", ".csv"
    )
    for line in ("- id: 'no'", "- id: no.wall", "- code: 1.a", "text: Draw"):
        assert line in found.text


@pytest.mark.parametrize(
    ("level", "lines"),
    [
        ("ks3", ["# framework: National Curriculum England  #", "# region: England ", "age: 13 "]),
        ("year_9", ["# region: England ", "age: 14 "]),
        ("grade_7", ["# framework: Common Core ", "# region: United States ", "age: 13 "]),
        ("national_5", ["framework: SQA ", "# region: Scotland "]),
    ],
)
def test_examples_of_a_course_file_fit_its_level(tmp_path: Path, level: str, lines: list[str]) -> None:
    path = tmp_path / "outcomes.txt"
    path.write_text("• Describe cells\n", encoding="utf-8")
    written = read_list(path, "science", level).text
    for line in lines:
        assert f"\n{line}" in written


@pytest.mark.parametrize(
    ("text", "level", "framework", "blank"),
    [
        ("Grade 7, Common\nCore\n• Add", "grade_7", "Common Core", "code assessment marking"),
        ("National curriculum in England\n• Add", "ks3", "National Curriculum in England", "code assessment marking"),
        ("• Add", "n5", "SQA", "code assessment marking"),
        (
            "CCSS.MATH.CONTENT.8.EE.A.1\nAdd\nCCSS.MATH.CONTENT.8.EE.A.2\nSubtract",
            "grade_8",
            "Common Core",
            "code assessment marking",
        ),
        ("SQA and IB\n• Add", "ks3", "", "code framework region assessment marking"),
    ],
)
def test_framework_that_a_list_names_is_not_left_blank(
    tmp_path: Path, text: str, level: str, framework: str, blank: str
) -> None:
    path = tmp_path / "list.txt"
    path.write_text(text, encoding="utf-8")
    found = read_list(path, "mathematics", level)
    assert list(found.blank) == blank.split()
    path.write_text(found.text, encoding="utf-8")
    assert read_course(path).framework == framework


def test_points_with_long_codes_can_be_planned(tmp_path: Path) -> None:
    code = "CCSS.MATH.CONTENT.8.EE.C.7"
    found = understood(
        tmp_path,
        f"{code}\nSolve linear equations.\n{code}.A\nGive examples of them.\n{code}.B\nUse fractions.\n"
        "CCSS.MATH.CONTENT.8.EE.C.8\nSolve pairs.\n",
    )
    path = tmp_path / "science-ks3.yaml"
    points = [point for out in read_course(path).outcomes() for point in out.points]
    assert [point.code for point in points] == [f"{code}.A", f"{code}.B", ""]
    assert max(len(point.id) for point in points) <= MAX_REF
    assert f"code: {code}" in found.text


def test_lessons_that_a_unit_takes_are_no_part_of_its_title(tmp_path: Path) -> None:
    found = understood(
        tmp_path,
        "Unit 1: Cells (6 lessons)\n• one\nUnit 2: Heat [2–3 weeks]\n• two\nUnit 3\n• (3 hours)\n"
        "Unit 4 (ca. 18 Std.)\n• d\n",
    )
    wanted = {"Unit 1: Cells": ["One"], "Unit 2: Heat": ["Two"], "Unit 3": ["(3 hours)"], "Unit 4": ["D"]}
    assert tree(found.groups) == wanted
    assert (
        'Times in titles were left out: "(6 lessons)", "[2–3 weeks]", "(ca. 18 Std.)" (lines 1, 3, 7).' in found.notes
    )


_BITS = (
    "• ", "- ", "o ", "1. ", "1.1 ", "(a) ", "# ", "", "  ", "\t", "B1.2 ", "\uf0b7\n", "**", "|", "; ", ",", '"',
    "===", "Unit 3: ", "12\n", "Page 4 of 9\n", "\f", "\u00ad", "com-\n", "ﬁ", "{", "[", "*", "&", "'", "no", "~",
    "\u2028", "\u202e", "é", "数学", "photosynthesis", "the causes of the war", "1918",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_any_text_is_refused_or_becomes_a_file_that_passes(tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    text = "\n".join("".join(drawn.choices(_BITS, k=drawn.randint(0, 8))) for _ in range(drawn.randint(0, 20)))
    for end in (".txt", ".md", ".csv"):
        try:
            understood(tmp_path, text, end)
        except CatalogueError as error:
            if error.code != "no_outcomes":
                raise
