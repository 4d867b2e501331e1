"""A new run on the desk: planned while one types, faults at their fields, started as a process of its own."""

from __future__ import annotations

import threading
from pathlib import Path
from urllib.parse import urlencode

import pytest

from pipeline.app.plan import plan
from pipeline.app.review import ReviewDecision, decide
from pipeline.app.stores import open_store
from pipeline.cli.main import main
from pipeline.settings import Execution, Identity
from tests.desks import Served

COURSE = "subject=mathematics&level=national_5&lessons=2"
TABLE = "subject,level,lessons\nmathematics,national_5,1\nphysics,higher,1\n"


@pytest.fixture(autouse=True)
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPELINE_OUT", str(tmp_path / "site"))


def await_runs(root: Path, number: int) -> list[str]:
    """The ids of so many completed runs, oldest first."""
    for _ in range(2400):
        heads = list(open_store(f"files:{root}").heads())
        if len(heads) == number and all(head.document.get("status") == "completed" for head in heads):
            return sorted(head.run_id for head in heads)
        threading.Event().wait(0.05)
    raise AssertionError([head.document for head in heads])


def test_plan_is_that_of_dry_run_and_keeps_nothing(desk: Served, root: Path) -> None:
    assert desk.data("new")["errors"] == {}
    assert "Choose a subject" in desk.get("new").text
    got = desk.data(f"new?{COURSE}&model=claude-sonnet-5-5")["plan"]
    asked = Identity(subject="mathematics", level="national_5", lessons=2, model="claude-sonnet-5-5")
    said = plan(asked, Execution(store=f"files:{root}")).to_json()
    assert got["expected_usd"] == pytest.approx(float(said["expected_usd"]))
    assert (got["lessons"], got["model"], len(got["calls"])) == (2, "claude-sonnet-5-5", len(said["calls"]))
    assert not root.exists()
    page = desk.get(f"new?{COURSE}&model=claude-sonnet-5-5").text
    assert "Start, expected $0." in page


def test_limits_and_gaps_are_told_before_a_start(
    desk: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = f"{COURSE}&model=claude-sonnet-5-5&labels=team%3Dmaths"
    assert desk.data(f"new?{asked}")["plan"]["short"] == []
    page = desk.get(f"new?{asked}&daily_budget_usd=0.05").text
    assert "$0.05 left, less than the expected" in page
    assert "--label=team=maths" in page
    monkeypatch.setenv("PIPELINE_DAILY_BUDGET_USD", "0.05")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-api03-not-a-real-key-0123456789")
    table = "subject,level,lessons,model\nmathematics,national_5,2,claude-sonnet-5-5\n"
    assert "less than the expected" in desk.post("new/courses", {"text": table, "do": "check"}).text
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    main(["subjects", "new", "history", "ks3"])
    (tmp_path / "courses").mkdir()
    (tmp_path / "courses" / "history-ks3.yaml").write_text(capsys.readouterr().out)
    monkeypatch.setenv("PIPELINE_CATALOGUE", str(tmp_path / "courses"))
    gap = "The question bank has no topics for any outcome"
    table = "subject,level,lessons\nhistory,ks3,2\n"
    assert gap in desk.get("new?subject=history&level=ks3&lessons=2").text
    assert gap in desk.post("new/courses", {"text": table, "do": "check"}).text


def test_faults_stand_at_their_fields_as_one_types(desk: Served) -> None:
    got = desk.data("plan?subject=mathematics&lessons=500&max_cost_usd=much")
    assert set(got["errors"]) == {"level", "lessons", "max_cost_usd"}
    parts = desk.get("plan?subject=mathematics&lessons=500").text
    assert "it can be 1 to 120" in parts.partition('id="fault-lessons"')[2].partition("</hx-partial>")[0]
    assert "<html" not in parts
    # It is swapped into the page of the form, so its links begin where that page's do, also under a proxy's prefix.
    for page in (desk.get(f"plan?{COURSE}").text, desk.get(f"new?{COURSE}").text):
        assert 'formaction="./new"' in page
    assert "it can be 1 to 120" in desk.get("new?subject=mathematics&lessons=500").text, "without script, too"


def test_course_of_ones_own_is_published_with_downloads(
    desk: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "name their folder with <code>PIPELINE_CATALOGUE</code>" in desk.get("new").text
    monkeypatch.setenv("PIPELINE_CATALOGUE", str(tmp_path))
    assert f"those in <code>{tmp_path}</code>" in desk.get("new").text
    got = desk.data(f"new?{COURSE}&downloads=csv,gift")
    assert (got["refused"], "--with=csv,gift" in got["command"]) == (None, True)
    assert "Did you mean csv?" in desk.data(f"new?{COURSE}&downloads=cvs")["refused"]


def test_start_makes_a_process_and_goes_to_its_run(desk: Served, root: Path) -> None:
    refused = desk.post("new", {"subject": "mathematics", "level": "", "lessons": "1"})
    assert refused.status == 400
    assert "Choose a level" in refused.text
    nothing = desk.post("new", {})
    assert (nothing.status, "Choose a subject" in nothing.text) == (400, True)
    odd = desk.post("new", {"subject": "maths", "level": "n5", "model": "off\0line", "out": "/elsewhere"})
    assert (odd.status, "cannot be typed" in odd.text) == (400, True)
    no_key = desk.post("new", {"subject": "mathematics", "level": "national_5", "model": "claude-sonnet-5-5"})
    assert no_key.status == 400
    assert "needs a credential" in no_key.text
    assert not root.exists()
    went = desk.post("new", {"subject": "maths", "level": "n5", "lessons": "1", "model": "offline", "batch": "no"})
    assert went.status == 303, went.text
    (run,) = await_runs(root, 1)
    assert went.headers["location"].endswith(f"runs/{run}")


def test_course_that_people_reviewed_is_not_replaced_without_a_word(desk: Served, root: Path) -> None:
    course = {"subject": "mathematics", "level": "national_5", "lessons": "1", "model": "offline", "force": "1"}
    assert desk.post("new", course).status == 303
    (run,) = await_runs(root, 1)
    again = f"new?{urlencode(course)}"
    assert desk.data(again)["replaces"] is None
    assert desk.data(f"runs/{run}/time")["replaces"] is None
    decide(open_store(f"files:{root}"), run, 1, ReviewDecision("approve", "M. Reid"))
    said = desk.data(again)["replaces"]
    assert f"-draft, where run {run} stands with 1 lesson that people reviewed" in said
    assert said in desk.get(again).text
    assert said in desk.get(f"runs/{run}/time").text
    assert desk.data(f"{again}&sample=1")["replaces"] is None


def test_unfinished_run_goes_on_with_its_own_settings(desk: Served, root: Path) -> None:
    course = {"subject": "mathematics", "level": "national_5", "model": "offline"}
    assert desk.post("new", course | {"lessons": "2", "until": "sow"}).status == 303
    store = open_store(f"files:{root}")
    for _ in range(2400):
        (head,) = store.heads()
        if head.document.get("status_detail") == "stopped_as_asked":
            break
        threading.Event().wait(0.05)
    got = desk.data("new?subject=mathematics&level=national_5&model=offline")
    assert (got["refused"], got["plan"]["run"], got["plan"]["lessons"]) == (None, head.run_id, 2)
    assert "This goes on with run" in desk.get("new?subject=mathematics&level=national_5&model=offline").text
    other = desk.data("new?subject=mathematics&level=national_5&model=offline&lessons=3")
    assert "was made with --lessons 2" in other["refused"]
    assert "--force" not in other["refused"]
    anew = desk.data("new?subject=mathematics&level=national_5&model=offline&lessons=3&force=yes")
    assert (anew["plan"]["run"], anew["plan"]["lessons"]) == (None, 3)


def test_table_is_checked_line_by_line_before_it_is_started(desk: Served, root: Path) -> None:
    wrong = desk.post("new/courses", {"text": TABLE + "drama,n9,1\n", "do": "start"})
    assert wrong.status == 400
    assert "Line 4: " in wrong.text
    assert "drama,n9,1" in wrong.text, "what was typed stays"
    assert "data-draft" not in wrong.text, "no older draft replaces the table that is shown"
    checked = desk.post("new/courses", {"text": TABLE, "do": "check"})
    assert checked.status == 200
    for text in ("2 courses", "National 5 Mathematics", "Higher Physics", "Start, expected $0.00"):
        assert text in checked.text
    assert not root.exists()
    assert desk.post("new/courses", {"text": TABLE, "do": "start"}).status == 303
    assert len(await_runs(root, 2)) == 2


def test_table_can_be_uploaded_and_is_bounded(desk: Served) -> None:
    body = (
        '--b\r\nContent-Disposition: form-data; name="file"; filename="courses.csv"\r\n'
        f"Content-Type: text/csv\r\n\r\n{TABLE}\r\n--b--\r\n"
    ).encode()
    own = {"Content-Type": "multipart/form-data; boundary=b", "Cookie": desk.cookie, "Sec-Fetch-Site": "same-origin",
           "Origin": f"http://127.0.0.1:{desk.port}"}  # fmt: skip
    got = desk.ask("POST", "/new/courses", own, body)
    assert got.status == 200, got.text
    assert "Higher Physics" in got.text
    assert desk.post("new/courses", {"text": "x" * 1_000_001, "do": "check"}).status == 400
