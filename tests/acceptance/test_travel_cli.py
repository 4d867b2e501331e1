"""Time travel from the command line: history, show --at, diff, fork, why, --from and replay, on runs of one's own."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from tests.documents import codes, table
from tests.said import Cli

#: Each body leaves a line in a file beside it, so that what ran can be counted.
OWN = """
from pathlib import Path
from pipeline import Outcome, Pipeline, step

HERE = Path(__file__).parent

def ran(name):
    with open(HERE / "ran.txt", "a") as file:
        print(name, file=file)

@step()
def plan(ctx):
    ran("plan")
    return Outcome({"parts": ctx.params["parts"]}, context={"tone": ctx.params.get("tone", "dry")})

def part(ctx, name):
    ran(f"part {name}")
    return f"{name} {ctx.context['tone']}"

@step()
def write(ctx):
    ran("write")
    return {"parts": list(ctx.map("part", ctx.outputs["plan"]["parts"], part, key=str))}

@step()
def count(ctx):
    ran("count")
    return {"n": len(ctx.outputs["plan"]["parts"])}

@step(effect="write", repeatable=True)
def file(ctx):
    ran("file")
    return {"text": " / ".join(ctx.outputs["write"]["parts"])}

STORY = Pipeline("story", [plan, write, count, file])
"""
PARTS = 'parts=["a","b"]'


@pytest.fixture
def own(root: Path) -> str:
    file = root.parent / "own.py"
    file.write_text(OWN)
    return f"{file}:STORY"


class Ran:
    """What ran since the last look."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def look(self) -> list[str]:
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        self._file.unlink(missing_ok=True)
        return lines


@pytest.fixture
def ran(root: Path) -> Ran:
    return Ran(root.parent / "ran.txt")


def run_of(cli: Cli, own: str, *more: str) -> str:
    said = cli("run", own, "--param", PARTS, "--quiet", *more)
    assert said.code == 0, said.err
    return str(cli("list", "--json").json()[0]["run_id"])


def fingerprint(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_history_says_how_each_step_ended_where_it_led_and_what_it_set(cli: Cli, own: str) -> None:
    run = run_of(cli, own)
    rows = cli("history", run, "--context", "--json").json()
    assert [(row["step"], row["status"], row["edges"]) for row in rows] == [
        ("plan", "completed", ["plan->write"]),
        ("write", "completed", ["write->count"]),
        ("count", "completed", ["count->file"]),
        ("file", "completed", []),
    ]
    assert rows[0]["context"] == {"tone": {"after": "dry"}}
    text = cli("history", run, "--context").out
    assert "plan: completed in" in text
    assert "tone: dry" in text
    assert "next: write" in text
    assert "Went on to" in cli("history", run).out


def test_show_at_a_point_is_the_run_as_it_was_then(cli: Cli, own: str) -> None:
    run = run_of(cli, own)
    rows = cli("history", run, "--json").json()
    for point in ("write", "write#1", str(rows[1]["seq"]), rows[1]["id"], rows[1]["id"][:30]):
        (then,) = cli("show", run, "--at", point, "--json").json()
        assert [(step["step"], step["status"]) for step in then["steps"]] == [
            ("plan", "completed"), ("write", "completed"), ("count", "pending"), ("file", "pending"),
        ]  # fmt: skip
        assert then["context"] == {"tone": "dry"}
    assert '"n"' not in cli("show", run, "--at", "plan").out
    assert cli("show", run, "write", "--at", "plan").code == 3
    assert cli("show", run, "write/a", "--at", "write").out.strip() == '"a dry"'
    (now,) = cli("show", run, "--json").json()
    assert (now["status"], now["seq"]) == ("completed", cli("log", run, "--json").json()[-1]["seq"])
    for point in ("nix", "999", "0", "file#2", "ffffffff"):
        for command in (["show", run, "--at", point], ["fork", run, "--at", point], ["diff", f"{run}@{point}", run]):
            said = cli(*command)
            assert said.code == 3
            assert f"has no point {point!r}" in said.err
            assert "start (1), plan (" in said.err


def test_diff_of_two_points_and_of_two_runs(cli: Cli, own: str) -> None:
    run = run_of(cli, own)
    other = run_of(cli, own, "--param", "tone=warm")
    (points,) = cli("diff", f"{run}@plan", f"{run}@write", "--json").json()
    assert [(step["step"], step["statuses"]) for step in points["steps"]] == [("write", [None, "completed"])]
    (runs,) = cli("diff", run, other, "--json").json()
    assert runs["params"]["changes"] == [{"place": "tone", "kind": "added", "after": "warm"}]
    assert runs["context"]["changes"] == [{"place": "tone", "kind": "changed", "before": "dry", "after": "warm"}]
    (write,) = [step for step in runs["steps"] if step["step"] == "write"]
    assert write["items"] == {"part/a": "changed", "part/b": "changed"}
    assert write["outputs"]["changes"][0] == {
        "place": "parts[0]", "kind": "changed", "before": "a dry", "after": "a warm"
    }  # fmt: skip
    text = cli("diff", run, other).out
    assert "~ parts[0]: a dry → a warm" in text
    assert "2 items: ~ write/part/a, ~ write/part/b" in text
    assert "All results are the same." in cli("diff", run, run).out


def test_a_fork_is_self_contained_free_and_leaves_its_source_alone(cli: Cli, own: str, root: Path, ran: Ran) -> None:
    run = run_of(cli, own)
    before = fingerprint(root / run)
    ran.look()
    (made,) = cli("fork", run, "--at", "write", "--json").json()
    assert ran.look() == []
    assert made["parent"] == {"run": run, "seq": cli("history", run, "--json").json()[1]["seq"]}
    assert made["inherited"] == ["plan", "write"]
    assert made["goes_on"] == ["count"]
    assert made["resume_command"] == f"./pipeline.sh run {own} --resume {made['run']} --store files:{root}"
    assert fingerprint(root / run) == before
    (shown,) = cli("status", made["run"], "--json").json()
    assert (shown["cost_usd"], shown["parent"]["run"], shown["status_detail"]) == (0, run, "stopped_as_asked")
    assert [step["inherited"] for step in shown["steps"][:2]] == [True, True]
    assert "✓ completed, inherited" in cli("status", made["run"]).out
    assert "completed, inherited" in cli("history", made["run"]).out
    # Its points are its own; those that it inherited are its parent's.
    said = cli("fork", made["run"], "--at", "plan")
    assert (said.code, "inherited plan" in said.err) == (3, True)
    assert cli("fork", made["run"], "--json").json()[0]["inherited"] == ["plan", "write"]
    shutil.rmtree(root / run)
    assert cli("run", own, "--resume", made["run"], "--quiet").code == 0
    assert ran.look() == ["count", "file"]
    assert cli("show", made["run"], "file", "--json").json()[0]["outputs"] == {"text": "a dry / b dry"}
    assert cli("show", made["run"], "write/b").out.strip() == '"b dry"'


def test_a_changed_value_makes_exactly_its_readers_again(cli: Cli, own: str, ran: Ran) -> None:
    run = run_of(cli, own)
    ran.look()
    for change, again in (
        ("params.tone=warm", ["plan", "part a", "part b", "write", "file"]),
        ("tone=warm", ["part a", "part b", "write", "file"]),
        ('outputs.plan.parts=["a","c"]', ["part c", "write", "count", "file"]),
        ('params.parts=["a","b"]', []),
    ):
        said = cli("fork", run, "--set", change)
        assert said.code == 0, said.err
        child = cli("list", "--json").json()[0]["run_id"]
        assert cli("run", own, "--resume", child, "--quiet").code == 0
        assert sorted(ran.look()) == sorted(again)
        assert cli("replay", child, "--file", own).code == 0
        ran.look()
        assert "Nothing is left to do." in said.out if not again else "Resume: ./pipeline.sh run" in said.out
    text = cli("fork", run, "--from-seq", "end", "--set", 'outputs.plan.parts=["a","c"]').out
    assert "Changed:   outputs.plan.parts; run again: write, count" in text
    assert "Follows:   file" in text
    assert "Inherited: plan ($0.00)" in text


def test_a_change_that_names_nothing_is_refused_and_no_run_is_made(cli: Cli, own: str) -> None:
    run = run_of(cli, own)
    for change, said in (
        ("novalue", "use KEY=VALUE"),
        ("=1", "use KEY=VALUE"),
        ("outputs.plan.nix=1", "plan has no output 'nix'"),
        ("outputs.nix.x=1", "no such step had ended by that point"),
        ("settings.nix=1", "no setting 'nix'"),
        ("params.api_key=1", "looks like a secret"),
        ("tone=sk-ant-api03-abcdefgh", "looks like a secret"),
    ):
        answer = cli("fork", run, "--set", change)
        assert answer.code == 2
        assert said in answer.err
        assert "sk-ant" not in answer.err
    said_early = cli("fork", run, "--at", "start", "--set", "tone=warm")
    assert (said_early.code, "Nothing has ended by that point" in said_early.err) == (2, True)
    assert len(cli("list", "--json").json()) == 1


def test_why_says_new_again_and_changed(cli: Cli, own: str) -> None:
    run = run_of(cli, own)
    assert "New: plan chose plan->write. Items: 2 made, 0 reused." in cli("why", run, "write").out
    (made,) = cli("fork", run, "--set", "params.tone=warm", "--json").json()
    cli("run", own, "--resume", made["run"], "--quiet")
    text = cli("why", made["run"], "plan").out
    assert f"Inherited from run {run}." in text
    assert "Run again because its inputs changed: params.tone; params.tone " in text
    assert "write: outputs.plan.parts, context.tone" in text
    assert "Reused: something before it had changed" in cli("why", made["run"], "count").out
    (item,) = cli("why", made["run"], "write/a", "--json").json()
    assert [go["kind"] for go in item["goes"]] == ["inherited", "changed"]
    assert list(item["goes"][1]["changed"]) == ["context.tone"]
    assert cli("why", run, "nix").code == 3


def test_from_makes_a_step_and_its_items_again(cli: Cli, own: str, ran: Ran) -> None:
    run = run_of(cli, own)
    ran.look()
    assert cli("run", own, "--resume", run, "--from", "write", "--quiet").code == 0
    assert sorted(ran.look()) == ["count", "file", "part a", "part b", "write"]
    assert "Run again as requested (--from)" in cli("why", run, "write/a").out
    for arguments in (
        ["run", own, "--from", "write"],
        ["lessons", "--subject", "maths", "--level", "n5", "--from", "sow"],
    ):
        said = cli(*arguments)
        assert said.code == 2
        assert "--resume RUN" in said.err
    assert cli("run", own, "--resume", run, "--from", "nix").code == 2
    assert ran.look() == []


def test_replay_acts_nowhere_and_names_the_first_difference(cli: Cli, own: str, root: Path, ran: Ran) -> None:
    run = run_of(cli, own)
    ran.look()
    before = fingerprint(root)
    said = cli("replay", run, "--file", own)
    assert (said.code, said.err) == (0, "")
    assert "3 steps run" in said.out
    assert "as recorded: file" in said.out
    assert "file" not in ran.look()
    file = Path(own.rpartition(":")[0])
    file.write_text(OWN.replace("len(ctx", "2 + len(ctx"))
    changed = cli("replay", run, "--file", own)
    assert changed.code == 6
    assert "Different: count, outputs.n: 2 → 4" in changed.out
    (told,) = cli("replay", run, "--file", own, "--json").json()
    assert [(each["path"], each["key"], each["recorded"], each["now"]) for each in told["differences"]] == [
        ("count", "outputs.n", 2, 4)
    ]
    assert cli("replay", run, "--file", own, "--to", "write").code == 0
    without = cli("replay", run)
    assert (without.code, "--file FILE.py:NAME" in without.err) == (2, True)
    file.write_text(OWN.replace('"story"', '"other"'))
    assert cli("replay", run, "--file", own).code == 2
    assert fingerprint(root) == before


def test_docs_name_the_fields_of_the_commands_that_travel(cli: Cli, own: str) -> None:
    run = run_of(cli, own)
    commands = {
        "diff": ["diff", f"{run}@plan", run],
        "fork": ["fork", run],
        "why": ["why", run, "write"],
        "replay": ["replay", run, "--file", own],
        "show": ["show", run],
    }
    documented = {codes(row[0])[0].split()[0]: codes(row[2]) for row in table("time-travel.md", "Command")}
    assert documented.keys() == commands.keys()
    for name, arguments in commands.items():
        (data,) = cli(*arguments, "--json").json()
        assert ["v", *documented[name]] == list(data), name
