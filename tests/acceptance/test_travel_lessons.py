"""Time travel of courses: forks that pay nothing for what they inherit, steps made again, replays."""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.app.plan import plan_fork
from pipeline.app.stores import open_store
from pipeline.records.run import bare
from tests.said import Cli
from tests.sample_runs import original_run
from tests.servers.billing import BillingServer

COURSE = ("lessons", "--subject", "maths", "--level", "N5", "--lessons", "3")


def newest(cli: Cli) -> str:
    return str(cli("list", "--json").json()[0]["run_id"])


def cost(cli: Cli, run: str) -> float:
    return float(cli("status", run, "--json").json()[0]["cost_usd"])


def published(cli: Cli, run: str) -> str:
    return str(cli("show", run, "publish", "--json").json()[0]["outputs"]["content_hash"])


def test_a_fork_of_a_course_publishes_the_same_bytes_and_pays_only_for_its_lessons(
    cli: Cli, out: Path, root: Path, server: BillingServer
) -> None:
    assert cli(*COURSE, "--quiet").code == 0
    run, asked, before = newest(cli), len(server.seen), published(cli, newest(cli))
    (made,) = cli("fork", run, "--at", "sow", "--json").json()
    assert len(server.seen) == asked
    assert cost(cli, made["run"]) == 0
    shutil.rmtree(root / run)
    said = cli(*made["resume_command"].removeprefix("./pipeline.sh ").split(), "--quiet")
    assert said.code == 0, said.err
    lessons = [row for row in cli("log", made["run"], "--json").json() if row["kind"] == "call_started"]
    assert {row["path"] for row in lessons} == {"lessons#1"}
    assert len(server.seen) - asked == len(lessons)
    assert cost(cli, made["run"]) > 0
    assert published(cli, made["run"]) == before


def test_the_plan_of_a_fork_is_priced_by_what_the_lessons_cost_and_writes_nothing(
    cli: Cli, out: Path, root: Path, server: BillingServer
) -> None:
    assert cli(*COURSE, "--quiet").code == 0
    run, asked, store = newest(cli), len(server.seen), open_store(f"files:{root}")
    before = sorted(root.rglob("*"))
    lessons = sum(line["cost_usd"] for line in cli("cost", run, "--json").json() if line.get("key") == "lessons")
    plan = plan_fork(store, run, at="sow", assignments=[])
    assert (plan.forked.run_id, plan.source) == ("", "1 earlier course")
    assert [bare(path) for path in plan.forked.inherited] == ["seed", "sow"]
    assert plan.expected_usd == pytest.approx(Decimal(str(lessons)), rel=Decimal("0.01"))
    assert (plan.worst_usd or 0) > (plan.expected_usd or 0) > 0
    whole = plan_fork(store, run, at="end", assignments=[])
    assert whole.expected_usd == 0
    harder = plan_fork(store, run, at="end", assignments=["settings.effort=high"])
    assert (harder.expected_usd or 0) >= (plan.expected_usd or 0)
    assert harder.to_json()["changed"][0]["steps"] == ["sow", "lessons", "publish"]
    assert (len(server.seen), sorted(root.rglob("*"))) == (asked, before)


def test_a_fork_in_the_middle_of_the_lessons_keeps_those_that_were_made(
    cli: Cli, out: Path, server: BillingServer
) -> None:
    assert cli(*COURSE, "--quiet", "--concurrency", "1").code == 0
    run, asked = newest(cli), len(server.seen)
    done = [row for row in cli("log", run, "--json").json() if row["kind"] == "task_completed"]
    second = [row for row in done if row["path"] == "lessons#1"][1]
    (made,) = cli("fork", run, "--at", str(second["seq"]), "--json").json()
    assert cli("lessons", "--resume", made["run"], "--quiet").code == 0
    calls = [row for row in cli("log", made["run"], "--json").json() if row["kind"] == "call_started"]
    assert {row["task"] for row in calls} == {"lessons/3"}
    assert len(server.seen) - asked == len(calls)
    assert published(cli, made["run"]) == published(cli, run)
    (same,) = cli("diff", run, made["run"], "--json").json()
    assert same["same"]
    assert cli("replay", made["run"]).code == 0


def test_a_fork_of_a_course_may_have_another_effort_and_is_no_other_course(
    cli: Cli, out: Path, server: BillingServer
) -> None:
    assert cli(*COURSE, "--until", "sow", "--quiet").code == 0
    run = newest(cli)
    for change in ("params.subject=physics", "settings.catalogue=x", "settings.lessons=999", "settings.lessons=many",
                   "settings.effort=huge", "settings.author=model", "settings.model=offline"):  # fmt: skip
        refused = cli("fork", "latest", "--set", change)
        assert (refused.code, "Traceback" in refused.err) == (2, False)
    assert "never mixed" in refused.err
    assert len(cli("list", "--json").json()) == 1
    said = cli("fork", run, "--set", "settings.effort=low")
    assert "Changed:   settings.effort; run again: sow, sow/outline" in said.out
    settings = [cli("status", name, "--json").json()[0]["settings"]["effort"] for name in (newest(cli), run)]
    assert settings == ["low", None]
    # The plain command never takes a fork for the course.
    assert run in cli(*COURSE, "--until", "sow").out
    assert len(cli("list", "--json").json()) == 2


def test_from_shows_what_it_may_cost_and_makes_the_lessons_again(cli: Cli, out: Path, server: BillingServer) -> None:
    assert cli(*COURSE, "--quiet").code == 0
    run, spent = newest(cli), cost(cli, newest(cli))
    events = cli("lessons", "--resume", run, "--from", "lessons", "--json").json()
    (plan,) = [event for event in events if event["type"] == "plan"]
    assert float(plan["worst_usd"]) > float(plan["expected_usd"]) > 0
    asked = [event for event in events if event["type"] == "call_started"]
    assert asked
    assert events.index(plan) < events.index(asked[0])
    assert {event["path"] for event in asked} == {"lessons#1"}
    assert cost(cli, run) > spent
    kinds = [go["kind"] for go in cli("why", run, "lessons/2", "--json").json()[0]["goes"]]
    assert kinds == ["new", "from"]
    assert cli("replay", run).code == 0


def test_a_course_replays_equal_and_one_that_was_made_otherwise_does_not(
    cli: Cli, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli(*COURSE, "--quiet").code == 0
    run = newest(cli)
    before = sorted((path, path.stat().st_mtime_ns) for path in out.rglob("*"))
    said = cli("replay", run, "--json").json()[0]
    assert (said["equal"], said["again"], said["taken"]) == (True, 3, ["publish#1"])
    assert sorted((path, path.stat().st_mtime_ns) for path in out.rglob("*")) == before
    monkeypatch.setattr("pipeline.lessons.pipeline._note_course", lambda ctx, rows: rows[0].update(label="Other"))
    changed = cli("replay", run)
    assert changed.code == 6
    assert "Different: lessons, artifact lessons[0].label:" in changed.out


def test_an_imported_course_is_shown_and_forked_as_it_came(cli: Cli, root: Path, out: Path) -> None:
    original_run(root)
    run = newest(cli)
    rows = cli("history", run, "--json").json()
    assert [(row["step"], row["inherited"]) for row in rows] == [("seed", True), ("sow", True)]
    (made,) = cli("fork", run, "--json").json()
    assert made["inherited"] == ["seed", "sow"]
    assert cost(cli, made["run"]) == 0
    assert cli("lessons", "--resume", run, "--lessons", "2", "--quiet").code == 0
    assert cli("replay", run).code == 0


def test_redo_says_that_the_offline_author_reads_no_note(cli: Cli, out: Path) -> None:
    assert cli(*COURSE, "--model", "offline", "--quiet").code == 0
    said = cli("redo", "latest", "lessons/1", "--note", "shorter")
    assert said.code == 0, said.err
    assert "The offline author ignores notes: the lesson will come out the same." in said.out
    assert "ignores notes" not in cli("redo", "latest", "lessons/1").out
