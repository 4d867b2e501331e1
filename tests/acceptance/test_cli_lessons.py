"""`lessons` and `run` from the command line: what is asked, refused, shown and left; by the offline author."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.bank.topic import SHIPPED
from tests.said import Cli, Said

COURSE = ("lessons", "--subject", "maths", "--level", "N5", "--lessons", "2")
OWN = """
from pipeline import Pipeline, step

@step()
def greet(ctx):
    return {"text": f"Hello, {ctx.params['name']}", "times": ctx.params.get("times", 1)}

HELLO = Pipeline("hello", steps=[greet])
"""


def test_help_exits_with_zero(cli: Cli) -> None:
    for arguments in ([], ["--help"], ["help"], ["help", "list"], ["cost", "--help"]):
        said = cli(*arguments)
        assert (said.code, said.err) == (0, "")
        assert said.out.startswith("Usage: ./pipeline.sh")


def test_mistakes_are_told_without_a_traceback(cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root.parent)
    for line, code in (
        ("lesson", 2),
        ("help nothing", 2),
        ("lessons", 2),
        ("lessons --subject alchemy --level n5", 2),
        ("lessons --subject maths --level n5 --lessons 0", 2),
        ("lessons --subject maths --level n5 --max-cost-usd much", 2),
        ("lessons --resume 20200101", 3),
        ("lessons --resume latest --force", 2),
        ("list --store redis://user:secret@host", 2),
        ("run nofile.py:x", 2),
        ("run x.py:y --param novalue", 2),
        ("subjects check nofile.yaml", 2),
        (" ".join((*COURSE, "--model claude-sonnet-5-5")), 2),
    ):
        said = cli(*line.split())
        assert (said.code, said.out) == (code, ""), line
        assert "Error: " in said.err
        assert "Traceback" not in said.err
        assert "secret" not in said.err
        assert not root.exists()
    assert "ANTHROPIC_API_KEY" in said.err
    said = cli("lessons", "--resume", "latest", "--json")
    (data,) = said.json()
    assert (said.code, data["type"], data["exit_code"], data["error"]["type"]) == (3, "error", 3, "RunNotFound")


def test_folder_that_cannot_be_published_to_is_told_before_anything_is_made(
    cli: Cli, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    said = cli(*COURSE, "--out", str(tmp_path / "file" / "courses"))
    assert said.code == 7
    assert f"Cannot write {tmp_path / 'file'}: it is a file, not a folder." in said.err
    assert "--out DIR" in said.err
    assert not root.exists()
    assert cli(*COURSE, "--out", str(tmp_path / "file" / "courses"), "--until", "sow").code == 0


def test_what_stands_where_the_course_will_be_is_told_before_anything_is_made(
    cli: Cli, root: Path, tmp_path: Path
) -> None:
    name = "course_c84775-draft"

    def foreign(out: Path) -> Path:
        (out / name).mkdir()
        (out / name / "thesis.txt").touch()
        return out / name

    def file(path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return path

    def pipe(path: Path) -> Path:
        path.parent.mkdir(parents=True)
        os.mkfifo(path)
        return path

    def link(path: Path) -> Path:
        path.parent.mkdir()
        path.symlink_to(tmp_path)
        return path

    def receipt(out: Path) -> Path:
        (out / f"{name}.receipt.json").mkdir()
        return out / f"{name}.receipt.json"

    ways: tuple[Callable[[Path], Path], ...] = (
        foreign, lambda out: file(out / name), lambda out: file(out / ".versions" / name), receipt,
        lambda out: pipe(out / ".versions" / name / ".lock"), lambda out: link(out / ".versions" / name),
    )  # fmt: skip
    for number, put in enumerate(ways):
        out = tmp_path / f"out{number}"
        out.mkdir()
        named = put(out)
        said = cli(*COURSE, "--out", str(out))
        assert (said.code, str(named) in said.err, root.exists()) == (7, True, False), said.err
    for out in (tmp_path / ("x" * 300), tmp_path.joinpath(*["y" * 200] * 25), tmp_path / ("x" * 300) / "deeper"):
        said = cli(*COURSE, "--out", str(out))
        assert (said.code, root.exists()) == (7, False), said.err
    assert cli(*COURSE, "--out", str(tmp_path / "good")).code == 0
    page = tmp_path / "good" / name / "index.html"
    page.write_text("mine")
    said = cli(*COURSE, "--out", str(tmp_path / "good"), "--force")
    assert (said.code, "--overwrite" in said.err, len(list(root.glob("*/journal.jsonl")))) == (7, True, 1)


def test_lessons_makes_a_course_and_says_where_it_is(cli: Cli, out: Path) -> None:
    shown = out / "course_c84775-draft"
    said = cli(*COURSE)
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    names = ("seed", "sow", "lessons", "publish")
    assert [line for line in lines if line.startswith("Step ")] == [
        f"Step {number}/4: {name.upper()}" for number, name in enumerate(names, 1)
    ]
    assert lines.count("  ⏳ In progress...") == 4
    assert f"Published: {shown}" in said.out
    assert "Cost: $0.00" in lines[-2]
    again = cli(*COURSE)
    assert (again.code, again.out.count("already completed")) == (0, 1)
    assert f"already completed {lines[-1].split()[-1]}" in again.out
    # The same made a second time stands published for both runs.
    forced = cli(*COURSE, "--force", "--json")
    objects = forced.json()
    assert ({line["v"] for line in objects}, forced.code) == ({1}, 0)
    assert (objects[-1]["type"], objects[-1]["published"]) == ("result", str(shown))
    steps = [(line["step"], line["index"], line["total"]) for line in objects if line["type"] == "step_started"]
    assert steps == [(name, number, 4) for number, name in enumerate(names, 1)]
    older = cli("list", "--json").json()[1]["run_id"]
    assert "Published: " in cli("lessons", "--resume", older).out
    # What is changed by hand is said; a folder that is gone is made again.
    (shown / "about.html").write_text("mine", encoding="utf-8")
    said = cli(*COURSE)
    assert said.code == 0, said.err
    assert "Published: " in said.out
    assert "Changed by hand since: about.html (changed)." in said.out
    shown.unlink()
    again = cli(*COURSE)
    assert again.code == 0
    assert "(the published folder is missing)" in again.out
    assert (shown / "index.html").exists()


def test_lessons_until_stops_and_resume_goes_on_with_the_banner(cli: Cli, out: Path) -> None:
    stopped = cli(*COURSE, "--until", "sow", "--quiet")
    assert stopped.code == 0, stopped.err
    assert "Stopped as requested" in stopped.out
    assert "Step " not in stopped.out
    assert not out.exists()
    (row,) = cli("list", "--json").json()
    assert (row["status_detail"], row["steps_completed"]) == ("stopped_as_asked", 2)
    assert f"./pipeline.sh lessons --resume {row['run_id']}" in stopped.out
    resumed = cli("lessons", "--resume", row["run_id"][:8])
    assert resumed.code == 0, resumed.err
    rule = "═" * 75
    assert "\n".join([
        rule, "RESUMING PIPELINE: lessons", f"Run ID: {row['run_id']}", "Subject: mathematics", "Level: national_5",
        "Last completed: sow", "Resuming from: lessons", rule, "", "Step 3/4: LESSONS", "  ⏳ In progress...",
    ]) in resumed.out  # fmt: skip
    assert "Step 1/4" not in resumed.out


def own(root: Path) -> str:
    file = root.parent / "own.py"
    file.write_text(OWN)
    return f"{file}:HELLO"


def greeting(said: Said) -> dict[str, object]:
    assert said.code == 0, said.err
    return dict(said.json()[0]["outputs"])


def test_run_takes_a_pipeline_of_the_users_own(cli: Cli, root: Path) -> None:
    said = cli("run", own(root), "--param", "name=World", "--param", "times=3")
    assert said.code == 0, said.err
    assert "Step 1/1: GREET" in said.out
    assert greeting(cli("show", "latest", "greet", "--json")) == {"text": "Hello, World", "times": 3}
    (row,) = cli("list", "--json").json()
    assert (row["pipeline"], row["status"], row["steps_total"]) == ("hello", "completed", 1)
    cli("run", own(root), "--param", "name=Ann=Bob", "--param", "times=NaN")
    assert greeting(cli("show", "latest", "greet", "--json")) == {"text": "Hello, Ann=Bob", "times": "NaN"}
    failed = cli("run", own(root))
    lines = failed.err.splitlines()
    assert failed.code == 6
    assert [line.split(":")[0] for line in lines] == ["Error", "Saved", "Resume"]
    assert "name" in lines[0]
    assert "--resume" in lines[2]
    assert json.loads(cli("status", "latest", "--json").out)["status"] == "failed"


def test_lessons_dry_run_shows_the_plan_and_leaves_nothing(cli: Cli, root: Path, out: Path) -> None:
    said = cli(*COURSE, "--dry-run", "--model", "claude-sonnet-5-5")
    assert said.code == 0, said.err
    rows = [
        line.split()[:3] for line in said.out.splitlines() if line.startswith(("seed ", "sow ", "lessons", "publish"))
    ]
    assert rows == [[name, "run", "new"] for name in ("seed", "sow", "lessons/1", "lessons/2", "lessons", "publish")]
    assert "with --batch, without caching $" in said.out
    assert "based on: prompts, counted" in said.out
    assert "<task_data>" not in said.out
    assert "--prompts DIR" in said.out
    assert said.out.splitlines()[-1].startswith("Worst cost: $")
    offline = cli(*COURSE, "--dry-run").out
    assert "tokens" not in offline.lower(), "the offline author uses none"
    assert "Expected cost: $0.00\nWith --model claude-sonnet-5-5 the expected cost is $" in offline
    (data,) = cli(*COURSE, "--dry-run", "--json").json()
    assert (data["type"], data["lessons"], data["estimated"], data["worst_usd"]) == ("plan", 2, True, 0)
    assert {prompt["label"] for prompt in data["prompts"]} >= {"outline", "lesson"}
    assert cli("lessons", "--resume", "latest", "--dry-run").code == 2
    assert not root.exists()
    assert not out.exists()


def test_lessons_dry_run_shows_every_prompt_where_it_is_told_to(cli: Cli, tmp_path: Path) -> None:
    printed = cli(*COURSE, "--dry-run", "--prompts", "-").out
    titles = [line.split()[2] for line in printed.splitlines() if line.startswith("── prompt: ")]
    names = ["outline", "entry-01", "entry-02", "lesson-01", "lesson-01-correction", "solve-01",
             "critic-01", "lesson-02", "solve-02", "critic-02"]  # fmt: skip
    assert titles == names
    assert "1 outline, 2 entry, 2 lesson, 1 correction, 2 solve, 2 critic" in printed
    written = cli(*COURSE, "--dry-run", "--prompts", str(tmp_path / "prompts"))
    assert written.code == 0, written.err
    assert {path.stem for path in (tmp_path / "prompts").iterdir()} == set(names)
    text = (tmp_path / "prompts" / "lesson-02.md").read_text(encoding="utf-8")
    assert "<task_data>" in text
    assert "(estimated)" in text
    assert len(written.out.splitlines()) < 25
    for more, calls in (((), ["lesson", "correction", "solve", "critic"]),
                        (("--no-blind-solve",), ["lesson", "correction", "critic"])):  # fmt: skip
        plan = cli(*COURSE, "--model", "claude-sonnet-5-5", "--dry-run", "--json", *more).json()[0]
        assert [row["label"] for row in plan["calls"] if row["step"] == "lessons"] == calls
    assert cli(*COURSE, "--prompts", "-").code == 2


def test_lessons_dry_run_is_of_the_run_there_is_and_refuses_what_the_command_would_refuse(cli: Cli, out: Path) -> None:
    assert cli(*COURSE, "--until", "sow", "--quiet").code == 0
    printed = cli(*COURSE, "--dry-run", "--prompts", "-").out
    assert "prompt: lesson-02 ──" in printed
    assert "prompt: critic-02 (estimated) ──" in printed
    other = (*COURSE[:-1], "3")
    for said in (cli(*other), cli(*other, "--dry-run"), cli("lessons", "--resume", "latest", "--lessons", "3")):
        assert said.code == 2
        assert "was made with --lessons 2, but 3 is given now" in said.err
        assert "--accept-changes" in said.err
        assert "--force" in said.err
    plan = cli(*other, "--dry-run", "--accept-changes", "--json").json()[0]
    assert plan["lessons"] == 3
    assert [(item["name"], item["action"], item["why"]) for item in plan["items"]][:2] == [
        ("seed", "reuse", "made before"),
        ("sow", "run", "changed lessons"),
    ]


def test_lessons_published_over_by_hand_stop_with_7_and_overwrite_goes_on(cli: Cli, out: Path) -> None:
    assert cli(*COURSE, "--quiet").code == 0
    page = out / "course_c84775-draft" / "index.html"
    page.write_text(page.read_text(encoding="utf-8") + "<!-- mine -->", encoding="utf-8")
    stopped = cli(*COURSE, "--force", "--lessons", "3", "--quiet")
    assert stopped.code == 7
    assert "index.html" in stopped.err
    assert "--overwrite" in stopped.err
    assert cli("lessons", "--resume", "latest", "--overwrite", "--quiet").code == 0


def test_lessons_refuse_a_run_whose_first_record_is_damaged(cli: Cli, root: Path, out: Path) -> None:
    assert cli(*COURSE, "--until", "seed", "--quiet").code == 0
    (journal,) = root.glob("*/journal.jsonl")
    journal.write_bytes(journal.read_bytes().replace(b'"kind"', b'"kinb"', 1))
    said = cli("lessons", "--resume", "latest")
    assert said.code == 3
    assert "its first record is damaged" in said.err


def test_lessons_say_what_a_forced_run_replaced_and_whose_course_stands_there(cli: Cli, out: Path) -> None:
    first = cli(*COURSE, "--json").json()[-1]
    assert first["published_note"] is None
    shown = out / "course_c84775-draft"
    other = cli(*COURSE, "--lessons", "3", "--force")
    assert other.code == 0, other.err
    assert f"It replaces what run {first['run']} had published there" in other.out
    (kept,) = [path for path in (out / ".versions" / shown.name).iterdir() if path.is_dir() and path != shown.resolve()]
    assert "lessons/02" in " ".join(str(path.relative_to(kept)) for path in kept.rglob("*.html"))
    newer = cli("list", "--json").json()[0]["run_id"]
    again = cli(*COURSE)
    assert again.code == 0, again.err
    assert f"already completed {first['run']}" in again.out
    assert "Published:" not in again.out
    assert f"holds what run {newer} published since" in again.out
    assert cli(*COURSE, "--json").json()[-1]["published"] is None
    command = again.out.partition("published since; ")[2].partition(" publishes this one again")[0]
    back = cli(*command.removeprefix("./pipeline.sh ").split())
    assert back.code == 0, back.err
    assert f"It replaces what run {newer} had published there" in back.out
    assert f"Published: {shown}" in cli(*COURSE).out
    assert "replaces" not in cli(*COURSE).out


def test_lessons_of_ones_own_bank_are_another_course_and_a_resume_keeps_to_it(
    cli: Cli, out: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "bank"
    mine.mkdir()
    shipped = SHIPPED / "mathematics-national_5" / "num.surds.yaml"
    topic = mine / "surds.yaml"
    topic.write_text(shipped.read_text("utf-8").replace("\naim: ", "\naim: Mine, ", 1), encoding="utf-8")
    words = (*COURSE[:-1], "1", "--bank", str(mine))
    assert cli(*words, "--until", "sow", "--quiet").code == 0
    written = topic.read_text("utf-8")
    topic.write_text(written + "\n", encoding="utf-8")
    refused = cli("lessons", "--resume", "latest", "--bank", str(mine), "--json")
    assert (refused.code, refused.json()[-1]["error"]["code"]) == (2, "changed_bank")
    topic.write_text(written, encoding="utf-8")
    assert cli("lessons", "--resume", "latest", "--quiet").code == 0
    first = cli("list", "--json").json()
    assert cli(*COURSE[:-1], "1", "--quiet").code == 0
    assert len(cli("list", "--json").json()) == len(first) + 1
