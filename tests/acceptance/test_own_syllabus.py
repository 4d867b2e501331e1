"""A syllabus of a teacher's own: what the guide shows is true; a course without numbers reads right on every page."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from pipeline.lessons.catalogue import read_course
from pipeline.lessons.syllabus.outcome_list import read_list
from tests.documents import DOCS, ROOT, fenced, text_of
from tests.said import Cli
from tests.servers.replies import Responder
from tests.servers.words import history

GUIDE, SOURCE = "syllabus.md", DOCS / "examples" / "ks3-history.txt"
IMPORT = ("subjects", "import", "devops/docs/examples/ks3-history.txt", "history", "ks3", "--catalogue", "my-courses")
COURSE = ("lessons", "--subject", "history", "--level", "ks3", "--catalogue", "my-courses", "--lessons", "9")
#: What only courses of Scotland, of numbers or of a framework have.
FOREIGN = r"SQA|SCQF|Scot(?:land|tish)|£|[Cc]alculator|mathematic|\bNone\b|\bnull\b|undefined|\\\(|\{\{|\[\["


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder from which the commands of the guide work as they are printed."""
    (tmp_path / "devops" / "docs").mkdir(parents=True)
    (tmp_path / "devops" / "docs" / "examples").symlink_to(SOURCE.parent)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path


@pytest.fixture
def responder(tmp_path: Path) -> Responder:
    file = tmp_path / "history-ks3.yaml"
    file.write_text(read_list(SOURCE, "history", "ks3").text, encoding="utf-8")
    return history(read_course(file).to_json())


def test_guide_shows_what_is_printed_and_written(cli: Cli, beside: Path) -> None:
    listed, printed = fenced(GUIDE, "text")
    assert listed == SOURCE.read_text(encoding="utf-8")
    said = cli(*IMPORT)
    assert (said.code, said.err) == (0, "")
    assert [line.split() for line in printed.splitlines() if "──" not in line] == [
        line.split() for line in said.out.splitlines() if "──" not in line
    ]
    written = (beside / "my-courses" / "history-ks3.yaml").read_text(encoding="utf-8")
    assert written.startswith(fenced(GUIDE, "yaml")[0])
    for text in (text_of(GUIDE), (ROOT / "README.md").read_text(encoding="utf-8")):
        assert " ".join(IMPORT) in text
        assert " ".join(COURSE) in text


def test_offline_author_says_what_it_leaves_unwritten_and_publishes_the_scheme(
    cli: Cli, beside: Path, out: Path
) -> None:
    cli(*IMPORT)
    assert "has no topics for any outcome" in cli(*COURSE, "--dry-run").out
    said = cli(*COURSE, "--yes")
    assert said.code == 0
    assert "has no topics for any outcome of KS3 History: the offline author plans the lessons" in said.out + said.err
    pages = {path.name: path.read_text(encoding="utf-8") for path in (out / "course_historyks3-draft").glob("*.html")}
    assert "A plan of 9 lessons; none of them is written yet." in pages["index.html"]
    assert "Lesson 6 is not written yet" in pages["index.html"]
    assert "Not covered" not in pages["index.html"]
    assert "What was checked" not in pages["about.html"]


@pytest.mark.usefixtures("server")
def test_course_without_numbers_reads_right_on_every_page(cli: Cli, beside: Path, out: Path) -> None:
    cli(*IMPORT)
    said = cli(*COURSE, "--yes")
    assert said.code == 0, said.err
    site = out / "course_historyks3"
    pages = {str(path.relative_to(site)): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert len(pages) == 4 + 2 * 9
    for name, page in pages.items():
        text = html.unescape(re.sub(r"<[^>]+>", " ", page.partition("</head>")[2]))
        assert re.findall(FOREIGN, text) == [], name
    index = pages["index.html"]
    for words in ("KS3 History", "12 of 12 outcomes taught", "The Black Death and after", "Describe the feudal system"):
        assert words in index
    assert "No answer to the 100 questions is a calculation" in pages["about.html"]
    assert "ks3-history.txt: learning outcomes" in pages["about.html"]
    first = next(page for name, page in pages.items() if name.startswith("lessons/01"))
    assert "How far can we trust this letter?" in first
    # What is expected stands in a column of its own only where marks name it.
    answers = next(page for name, page in pages.items() if name.startswith("answers/01"))
    scheme = answers.partition("Question 8, 2 marks")[2].partition("</table>")[0]
    assert ("Expected answer" in scheme, "says that Edward left no son" in scheme) == (False, True)
    assert "Expected answer" in answers.partition("Question 7, 1 mark")[2].partition("</table>")[0]
