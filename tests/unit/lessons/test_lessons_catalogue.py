"""Subjects and levels in every spelling; course files: shipped ones, an own folder, faults with file, line and key."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.content.levels import level_row
from pipeline.content.names import LEVELS, SUBJECTS, known_level, known_subject, level_name, shown, subject_name
from pipeline.errors import CatalogueError
from pipeline.frameworks import SQA_LEVELS, region_of, standing
from pipeline.lessons.catalogue import Catalogue, file_name, read_course
from pipeline.lessons.course import Course, course_id
from pipeline.lessons.syllabus.course_file import template
from pipeline.publish import mathml

GOOD = template("physics", "national_5")


def test_names_are_found_under_each_alias_whatever_the_case_and_separators() -> None:
    for table, find in ((SUBJECTS, subject_name), (LEVELS, level_name)):
        for canonical, others in table.items():
            for text in (canonical, *others):
                spellings = (text.upper(), text.replace("_", "-"), text.replace("_", " "), text.replace("_", ""))
                assert {find(spelling) for spelling in (*spellings, f"  {text} ")} == {canonical}
    assert subject_name("application_of_mathematics") == subject_name("applications-of-mathematics")
    assert shown(subject_name("aom")) == "Applications of Mathematics"


def test_any_name_is_a_subject_and_a_level() -> None:
    subjects = ("Science", "Design & Technology", "Français", "  PSHE ", "数学", "हिन्दी")
    assert list(map(subject_name, subjects)) == ["science", "design_technology", "français", "pshe", "数学", "हिन्दी"]
    levels = ("KS3", "Key Stage 3", "A-Level", "Year 9", "6e", "10. Klasse", "GCSE")
    assert list(map(level_name, levels)) == ["ks3", "ks3", "a_level", "year_9", "6e", "10_klasse", "gcse"]
    assert [shown(name) for name in ("ks3", "gcse", "a_level", "year_9", "design_technology")] == [
        "KS3", "GCSE", "A Level", "Year 9", "Design Technology",
    ]  # fmt: skip
    assert known_subject("latin") is None
    assert known_level("Nat 5") == "national_5"


def test_name_that_a_course_file_would_not_pass_is_refused_at_once() -> None:
    for text, said in (("", "holds no letter"), ("&!", "holds no letter"), ("a" * 41, "is longer than 40")):
        with pytest.raises(CatalogueError, match=said) as caught:
            subject_name(text)
        assert (caught.value.code, caught.value.exit_code) == ("invalid_subject", 2)
        with pytest.raises(CatalogueError, match=said):
            level_name(text)


def test_level_without_a_row_reads_as_its_age() -> None:
    rows = [level_row({"level": "ks3", "age": age}) for age in (7, 10, 13, 16, 18)]
    assert [row.sentence[1] for row in rows] == [14, 16, 20, 24, 28]
    assert level_row({"level": "ks3"}) == rows[2]
    for framework in ("", "National Curriculum England"):
        commands = level_row({"level": "ks3", "framework": framework}).commands
        assert ("assess" in commands, "evaluate" in commands) == (True, True)
    assert level_row({"level": "national_4", "age": 30}) is SQA_LEVELS["national_4"]


def test_id_of_a_course_is_of_letters_and_digits_and_its_own() -> None:
    assert course_id("physics", "higher", "C847 75") == "course_c84775"
    assert course_id("français", "6e", "") == "course_francais6e"
    chinese, other = course_id("数学", "ks3", ""), course_id("物理", "ks3", "")
    assert chinese != other
    assert chinese.startswith("course_ks3")


def test_names_import_neither_yaml_nor_pydantic() -> None:
    heavy = {"yaml", "pydantic", "anthropic", "rich"}
    code = f"import sys, pipeline.content.names; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def write(tmp_path: Path, text: str, name: str = "physics-national_5.yaml") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def faults(tmp_path: Path, text: str) -> list[str]:
    path = write(tmp_path, text)
    with pytest.raises(CatalogueError) as caught:
        read_course(path)
    return [line.removeprefix(f"{path}:") for line in caught.value.message.splitlines()]


def test_catalogue_names_faults_of_all_kinds_at_once(tmp_path: Path) -> None:
    good = template("chemistry", "higher")
    text = good.replace("points: [first", "pionts: [first").replace("marks: 50", "marks: fifty")
    found = faults(tmp_path, text)
    assert [line.partition(":")[0] for line in found] == [
        str(line_of(text, part)) for part in ("id: one.first ", "pionts", "marks: fifty")
    ]
    assert "neither points nor standards" in found[0]
    assert "groups.0.outcomes.0.pionts" in found[1]


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def test_catalogue_ships_three_courses_that_survive_json() -> None:
    for subject, level, its_id, groups, outcomes, points in (
        ("maths", "n5", "course_c84775", 6, 40, 77),
        ("aom", "nat 4", "course_c84474", 4, 6, 20),
        ("physics", "higher", "course_c85776", 4, 22, 77),
    ):
        course = Catalogue().course(subject, level)
        every = [out for group in course.groups for out in group.outcomes]
        assert course.course_id == its_id
        assert (len(course.groups), len(every), sum(len(out.points) for out in every)) == (groups, outcomes, points)
        again = Course.from_json(course.to_json())
        assert (again, again.content_hash()) == (course, course.content_hash())


def test_course_points_have_ids_of_list_place_or_printed_code(tmp_path: Path) -> None:
    course = read_course(write(tmp_path, GOOD))
    other = read_course(write(tmp_path, GOOD.replace("first content point", "first point")))
    assert other.content_hash() != course.content_hash()
    assert [point.id for point in course.points()] == ["one.first.1", "one.first.2", "one.second.AS1.1"]
    assert [out.id for out in course.outcomes(cross_cutting=True)] == ["across.inquiry"]


def test_template_is_valid_for_every_pair(tmp_path: Path) -> None:
    for subject, level in (("aom", "n3"), ("art", "h"), ("science", "KS3"), ("chemistry", "gcse"), ("数学", "9")):
        course = read_course(write(tmp_path, template(subject, level)))
        assert course.id == f"{subject_name(subject)}/{level_name(level)}"
        assert (course.scqf is not None) == (known_level(level) in SQA_LEVELS)


def test_own_folder_adds_courses_and_wins_over_shipped_ones(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    write(tmp_path, template("physics", "higher").replace("First area", "My area"), "physics-higher.yaml")
    catalogue = Catalogue(tmp_path)
    assert catalogue.course("phys", "N5").groups[0].title == "First area"
    assert catalogue.course("phys", "h").groups[0].title == "My area"
    assert catalogue.course("maths", "n5").course_id == "course_c84775"
    assert {(file.subject, file.own) for file in catalogue.files()} == {
        ("physics", True), ("mathematics", False), ("application_of_mathematics", False),
    }  # fmt: skip


def test_own_folder_may_hold_a_foreign_subject_and_level(tmp_path: Path) -> None:
    write(tmp_path, template("latin", "year 9").replace('# code: "ABC-1"', 'code: "LAT-9"'), "latin-year_9.yaml")
    course = Catalogue(tmp_path).course("Latin", "year 9")
    assert (course.subject, course.level, course.course_id) == ("latin", "year_9", "course_lat9")


@pytest.mark.parametrize(
    ("name", "subject", "level"),
    [
        ("Science-KS3.yaml", "science", "ks3"), ("science-key-stage-3.yml", "science", "ks3"),
        ("physics-a-level.YAML", "physics", "a_level"), ("design-technology-gcse.yml", "design_technology", "gcse"),
        ("history-year-9.yml", "history", "year_9"),
    ],
)  # fmt: skip
def test_names_of_files_are_read_in_any_spelling(tmp_path: Path, name: str, subject: str, level: str) -> None:
    write(tmp_path, template(subject, level), name)
    assert Catalogue(tmp_path).course(subject, level).id == f"{subject}/{level}"


def test_two_files_of_one_course_are_an_error(tmp_path: Path) -> None:
    for name in ("science-ks3.yaml", "science-ks3.yml"):
        write(tmp_path, template("science", "ks3"), name)
    with pytest.raises(CatalogueError, match=r"science-ks3\.yml: is the same course as science-ks3\.yaml"):
        Catalogue(tmp_path)


def test_pair_without_a_file_says_what_was_meant_and_how_to_add_one(tmp_path: Path) -> None:
    write(tmp_path, "notes", "notes.txt")
    with pytest.raises(
        CatalogueError, match=r"no course file for Phisics at Higher\. Did you mean physics\?"
    ) as caught:
        Catalogue(tmp_path).course("phisics", "higher")
    assert "Not read, since their names are not SUBJECT-LEVEL.yaml: notes.txt." in caught.value.message
    write(tmp_path, "", "histroy-ks3.yaml")
    with pytest.raises(CatalogueError, match=r"no course file for History at KS3\. Did you mean histroy\?"):
        Catalogue(tmp_path).course("history", "ks3")
    with pytest.raises(CatalogueError, match="no course file for Chemistry at National 3") as caught:
        Catalogue().course("chem", "n3")
    assert caught.value.hint.startswith("If the file is there, name its folder: --catalogue DIR.")
    assert "subjects new chemistry national_3" in caught.value.hint
    assert file_name("chemistry", "national_3") in caught.value.hint
    assert "mathematics national_5" in caught.value.message


def test_own_folder_that_is_missing_is_an_error_and_a_misnamed_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="none: cannot be read: No such file or directory"):
        Catalogue(tmp_path / "none")
    misnamed = write(tmp_path, GOOD, "chemistry-national_5.yaml")
    with pytest.raises(CatalogueError, match=r"id: is physics/national_5, but the file's name says chemistry"):
        Catalogue(tmp_path).course("chem", "n5")
    misnamed.rename(tmp_path / "physics.yaml")
    assert Catalogue(tmp_path).unread == [tmp_path / "physics.yaml"]


#: A change to the template, the line it is on, and the key and words of the fault.
FAULTS = [
    ("catalogue: 1", "catalogue: 2", "catalogue: 2", "catalogue: is 2, wanted 1"),
    ("title: First area", "titel: First area", "id: one", "groups.0.title: Field required"),
    ("kind: area     ", "kind: aria     ", "kind: aria", "groups.0.kind: Input should be 'unit', 'topic'"),
    ("marks: 50", "marks: fifty", "id: p1", "assessment.components.0.marks: Input should be a valid integer"),
    ("one.second", "one.first", "First learning", "outcome one.first stands a second time"),
    ("- id: across\n", "- id: one\n", "id: one\n", "group one stands a second time"),
    ("one.second", "two.second", "two.second", "'two.second' does not begin with its group, one."),
    ("{level: 5,", "{level: five,", "scqf:", "scqf.level: Input should be a valid integer"),
    ("# aims", "course_id: course_c76\n# aims", "course_c76", "course_id: is 'course_c76', wanted course_c00075"),
    ('"C000 75"', '"C000 76"', '"C000 76"', "code: 'C000 76' does not end in 75"),
    ("subject: physics", 'subject: "!"', "subject:", "subject: '!' cannot be the name of a subject"),
    ("subject: physics", "subject: phys", "subject: phys", "subject: is 'phys', wanted its canonical name 'physics'"),
    ("points: [plan", "pionts: [plan", "across.inquiry", "groups.1.outcomes.0: has neither points nor standards"),
    ("points: [plan,", "points: [7,", "across.inquiry", "groups.1.outcomes.0.points.0: is 7, wanted a text"),
    ("code: AS1.1, ", "", "a skill it asks for", "standards.0: has no code"),
    ("verified: false", "verified: perhaps", "verified: perhaps", "sources.0.verified"),
    ("# framework: SQA ", "framework: Comon Core ", "framework:", "'Comon Core'; did you mean common_core?"),
    ("# region: Scotland ", "region: Scotand ", "region:", "'Scotand'; did you mean scotland?"),
    ("structure: areas", "structure: bits", "structure: bits", "structure: Input should be 'units', 'skills' or"),
]  # fmt: skip


def test_fault_names_file_line_and_key(tmp_path: Path) -> None:
    for old, new, where, said in FAULTS:
        text = GOOD.replace(old, new, 1)
        assert text != GOOD
        found = faults(tmp_path, text)
        line = next((line for line in found if said in line), "")
        assert line, found
        wanted = line_of(text, where.strip("\n"))
        assert abs(int(line.split(":")[0]) - wanted) <= (0 if "second time" not in said else 30), line


def test_fault_of_a_repeated_key_a_bad_indent_and_an_alias_names_its_line(tmp_path: Path) -> None:
    twice = GOOD + "title: again\n"
    assert faults(tmp_path, twice) == [f"{len(twice.splitlines())}: title: appears twice"]
    bent = GOOD.replace("structure: areas", "structure: areas: more")
    assert faults(tmp_path, bent)[0].startswith(f"{line_of(bent, 'areas: more')}: ")
    alias = GOOD.replace("# aims: [one line each]", "aims: &a [*a]")
    assert faults(tmp_path, alias) == [f"{line_of(alias, '&a')}: *a: aliases are not allowed"]


def test_file_that_is_no_course_is_a_catalogue_error(tmp_path: Path) -> None:
    for text in ("", "just words", "- a\n- b\n", "catalogue: 1\n  bad: [", "\x00", "a: !!python/object:os.x {}"):
        assert faults(tmp_path, text)
    path = tmp_path / "physics-higher.yaml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(CatalogueError, match="is not UTF-8"):
        read_course(path)
    with pytest.raises(CatalogueError, match="cannot be read"):
        read_course(tmp_path / "none.yaml")


def test_course_without_a_teachable_outcome_is_an_error(tmp_path: Path) -> None:
    text = GOOD.replace("kind: area                    #", "cross_cutting: true\n    kind: area                    #")
    assert any("no group has outcomes that can be taught" in line for line in faults(tmp_path, text))


def test_shipped_courses_equal_the_facts_they_were_read_from() -> None:
    folder = Path(__file__).parents[4] / "shared" / "curriculum"
    if not folder.is_dir():
        pytest.skip("the source files are not here")
    for file in Catalogue().files():
        source, course = read_course(folder / file.path.name), read_course(file.path)
        # Sheets were written beside them.
        bare = course.assessment.model_copy(update={"sheets": []})
        assert source.to_json() == course.model_copy(update={"assessment": bare}).to_json()


@pytest.mark.parametrize(("subject", "level"), [("mathematics", "national_5"), ("physics", "higher")])
def test_sheets_of_shipped_courses_can_be_set(subject: str, level: str) -> None:
    course = Catalogue().course(subject, level)
    titles = [sheet.title.lower() for sheet in course.assessment.sheets]
    assert titles == (course.assessment.provided or ["formulae list"])
    for line in (line for sheet in course.assessment.sheets for line in sheet.lines):
        assert mathml.check(line) == [], line


def test_a_course_without_sheets_has_the_hash_it_had() -> None:
    course = Catalogue().course("application_of_mathematics", "national_4")
    assert "sheets" not in course.to_json()["assessment"]
    assert Course.from_json(course.to_json()) == course


#: What a course file says of its framework and region; what is printed of them; whether pages are of Scotland.
STANDINGS = [
    ({}, ("SQA C000 75", "SCQF level 5", "24 credits"), "Scotland"),
    ({"code": '"LAT 9"'}, ("LAT 9", "", ""), ""),
    ({"code": '""'}, ("", "", ""), ""),
    ({"code": '""', "framework": "sqa"}, ("SQA", "SCQF level 5", "24 credits"), "Scotland"),
    ({"framework": "NC England", "code": "S3"}, ("National Curriculum in England S3", "", ""), "England"),
    ({"code": '"7"', "framework": "CCSS"}, ("Common Core 7", "", ""), "the United States"),
    ({"code": '"8462"', "framework": "AQA", "region": "england"}, ("AQA 8462", "", ""), "England"),
    ({"code": '""', "framework": "IB", "region": "Kenya"}, ("IB", "", ""), "Kenya"),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "printed", "region"), STANDINGS)
def test_framework_and_region_decide_what_is_printed_of_a_course(
    keys: dict[str, str], printed: tuple[str, str, str], region: str, tmp_path: Path
) -> None:
    text = "".join(line for line in GOOD.splitlines(keepends=True) if not line.startswith(("code:", "course_id:")))
    keys = {"code": '"C000 75"', **keys}
    course = read_course(write(tmp_path, text + "".join(f"{key}: {value}\n" for key, value in keys.items())))
    again = Course.from_json(course.to_json())
    assert again == course
    assert standing(again.to_json()) == printed
    assert region_of(again.to_json()).title == region


def test_course_without_a_code_has_its_id_of_subject_and_level(tmp_path: Path) -> None:
    assert read_course(write(tmp_path, GOOD.replace('"C000 75"', '""'))).course_id == "course_physicsnational5"


def test_keys_that_came_later_leave_no_trace_where_a_file_has_none() -> None:
    for file in Catalogue().files():
        assert not {"framework", "region", "licence", "attribution"} & read_course(file.path).to_json().keys()
