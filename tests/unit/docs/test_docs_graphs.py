"""The guide to DOT graphs says what the code does: rules, kinds, attributes, and an example that can be run."""

from __future__ import annotations

import re

from pipeline.dot.attributes import DECIDING, TABLE, Form, guide
from pipeline.dot.conditions import compile_condition
from pipeline.dot.diagnostics import INFO
from pipeline.dot.kinds import KINDS
from pipeline.dot.parser import read_graph
from pipeline.dot.rules import check
from pipeline.dot.stylesheet import PROPERTIES
from tests.documents import DOCS, ROOT, codes, fenced, table, text_of


def test_docs_graphs_lists_every_rule() -> None:
    said = {codes(row[0])[0] for row in table("graphs.md", "Rule", "Severity")}
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "pipeline" / "dot").glob("*.py"))
    made = set(re.findall(r'finding\(\s*"(\w+)"', sources))
    assert said == made | {"attribute_value", "fidelity_valid"}


def test_docs_graphs_lists_every_kind() -> None:
    rows = {codes(row[0])[0]: codes(row[1])[0] for row in table("graphs.md", "Type", "Shape")}
    assert rows == {kind.type: kind.shape for kind in KINDS}


def test_docs_graphs_has_the_table_of_attributes_as_it_is() -> None:
    assert guide() in text_of("graphs.md"), f"devops/docs/graphs.md, Attributes:\n{guide()}"
    assert {each.name for each in TABLE if each.form is not Form.TEXT or each.words} <= set(codes(guide()))
    assert all(f"`{name}`" in text_of("graphs.md") for name in PROPERTIES)


def test_docs_graphs_conditions_can_be_read() -> None:
    lines = fenced("graphs.md", "text")[0].splitlines()
    assert len(lines) == 4
    assert all(compile_condition(line).part for line in lines)


def test_docs_example_course_is_without_fault() -> None:
    graph = read_graph(DOCS / "examples" / "course.dot")
    assert [finding for finding in check(graph) if finding.severity != INFO] == []
    assert [name for name, node in graph.nodes.items() if node.flag("goal_gate")] == ["critic"]


def test_every_attribute_that_the_code_reads_is_in_the_table_as_one_that_decides() -> None:
    folders = (ROOT / "pipeline" / "dot", ROOT / "pipeline" / "formats" / "attractor")
    code = "".join(path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py"))
    read = {found[1] for found in re.finditer(r'\.(?:text|flag|number|decimal|seconds)\("([\w.]+)"', code)}
    for found in re.finditer(r"\.first\(([^)]*)\)", code):
        read.update(re.findall(r'"([\w.]+)"', found[1]))
    known = {each.name: each for each in reversed(TABLE)}
    assert len(read) > 50
    assert sorted(read - known.keys()) == []
    # What people read, and what is decided by elsewhere: the kind, the stylesheet's effects, a choice among edges.
    elsewhere = {"label", "shape", "rankdir", "model_stylesheet", "temperature", "dialect"}
    assert sorted(name for name in read - elsewhere if known[name].use not in DECIDING) == []
