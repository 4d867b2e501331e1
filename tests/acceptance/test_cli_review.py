"""`review` from the command line: the queue, one lesson, decisions; and a process that dies while deciding."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from pipeline.app.review import CourseReview, ReviewDecision, decide
from pipeline.clock import SystemClock
from pipeline.engine.amendment import take_in
from pipeline.store.files import FileStore
from pipeline.store.reader import load
from tests.acceptance.dying import DIED, DyingDisk
from tests.faulty_disk import LazyDisk
from tests.reviews import NEW
from tests.reviews import drafted as drafted
from tests.reviews import run as run
from tests.said import Cli


def test_review_from_the_queue_to_the_published_page(cli: Cli, run: str, root: Path, out: Path) -> None:
    said = cli("review", run)
    assert "0 of 2 approved" in said.out
    assert said.out.count("to review") == 2
    shown = cli("review", run, "2", "--json").json()[0]
    assert (shown["lesson"], shown["status"], shown["decisions"]) == (2, "open", [])
    edited = shown["value"]
    edited["cards"][0]["items"][0]["feedback"] = NEW
    file = root.parent / "edited.json"
    file.write_text(json.dumps(edited))
    assert "c1.q1.feedback: " in cli("review", run, "2").out
    approved = cli("review", run, "1", "--approve", "--by", "M. Reid").out
    assert "approved, by M. Reid" in approved
    assert f"./pipeline.sh lessons --resume {run}" in approved
    assert cli("review", run, "lessons/2", "--edit", str(file), "--by", "A. Lee").code == 0
    assert "2 of 2 approved" in cli("review", run).out
    assert f"+ c1.q1.feedback: {NEW}" in cli("review", run, "2").out
    assert "lessons/2: edit, by A. Lee" in cli("log", run).out
    # The run keeps --review; all is decided now.
    assert cli("lessons", "--resume", run).code == 0
    pages = {path.name: path.read_text() for path in (out / "course_c84775-draft").rglob("answers/02-*.html")}
    assert all(NEW in text and "Edited and reviewed by A. Lee." in text for text in pages.values())
    assert pages
    assert cli("lessons", "--resume", run).out.startswith("already completed")
    # A decision after it shows at the next resume.
    assert cli("review", run, "1", "--undo", "--by", "M. Reid").code == 0
    assert cli("lessons", "--resume", run).code == 8
    assert cli("lessons", "--resume", run, "--no-review").code == 0
    assert "1 of 2 lessons reviewed" in (out / "course_c84775-draft/about.html").read_text()


def test_lesson_is_made_again_as_asked_at_the_next_resume(cli: Cli, run: str) -> None:
    said = cli("review", run, "1", "--redo", "Shorter, please.", "--by", "M. Reid")
    assert (said.code, "cannot follow notes" in said.out) == (0, True)
    assert "to be made again" in cli("review", run).out
    assert "Regenerating lessons/1" in cli("lessons", "--resume", run).out
    assert "M. Reid: to be made again: Shorter, please." in cli("review", run, "1").out
    assert "to be made again" not in cli("review", run).out


def test_mistakes_of_reviews_are_told(cli: Cli, run: str, root: Path) -> None:
    bad = root.parent / "bad.json"
    bad.write_text('{"c1.q1.ask": ""}')
    for arguments, code, words in (
        (["--approve"], 2, "Give one ITEM and one decision"),
        (["1", "--approve", "--undo"], 2, "Give one ITEM and one decision"),
        (["7", "--approve"], 3, "has no lesson 7"),
        (["one", "--approve"], 2, "'one' is not a lesson"),
        (["1", "--edit", str(bad)], 2, "does not pass its checks"),
        (["1", "--undo"], 2, "no decision that could be taken back"),
    ):
        said = cli("review", run, *arguments)
        assert (said.code, words in said.err) == (code, True), said.err
    bad.write_text("{")
    assert "is not JSON" in cli("review", run, "1", "--edit", str(bad)).err


def test_examples_are_written_a_line_each(cli: Cli, run: str, root: Path) -> None:
    cli("review", run, "1", "--approve", "--by", "M. Reid", "--note", "Fine.")
    file = root.parent / "examples.jsonl"
    assert cli("review", run, "--export", str(file)).code == 0
    (row,) = map(json.loads, file.read_text().splitlines())
    assert (row["lesson"], row["verdict"], row["by"], row["note"], row["edit"]) == (
        1,
        "approve",
        "M. Reid",
        "Fine.",
        None,
    )
    assert row["draft"]["cards"]


def dies(root: Path, run: str, at: int, how: str, *, owned: bool) -> int:
    """Edit the second lesson in a process of its own that dies at a call of the disk; its exit code."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        holder = FileStore(root, SystemClock(), disk=LazyDisk()).open(run) if owned else None
        decision = ReviewDecision("edit", "A. Lee", edit={"c1.q1.feedback": NEW})
        decide(FileStore(root, SystemClock(), disk=DyingDisk(at, how)), run, 2, decision)
        if holder is not None:
            holder.close()
        os._exit(0)
    finally:
        os._exit(1)


@pytest.mark.parametrize(("how", "owned"), [("before", True), ("middle", True), ("after", False), ("middle", False)])
def test_reviewer_who_dies_at_any_call_of_the_disk_leaves_a_whole_decision_or_none(
    run: str, root: Path, tmp_path: Path, how: str, owned: bool
) -> None:
    decide(FileStore(root, SystemClock()), run, 1, ReviewDecision("approve", "M. Reid"))
    seen, at, codes = set(), 0, set()
    while 0 not in codes:
        at += 1
        place = tmp_path / str(at)
        shutil.copytree(root, place)
        codes.add(dies(place, run, at, how, owned=owned))
        assert codes <= {0, DIED}
        store = FileStore(place, SystemClock(), disk=LazyDisk())
        course = CourseReview.of(store, run)
        assert course.lesson(1).status == "approved"
        seen.add(course.lesson(2).status)
        if course.lesson(2).status == "edited":
            row = course.edit(2)
            assert row is not None
            assert row["lesson"]["cards"][0]["items"][0]["feedback"] == NEW
        # Whoever comes next takes it in, and decides on.
        take_in(store, run, SystemClock())
        assert {each.choice for found in load(store, run).reviews.values() for each in found} <= {"approve", "edit"}
        after = decide(store, run, 2, ReviewDecision("approve", "A. Lee"))
        assert after.status == ("approved" if course.lesson(2).status == "open" else "edited")
        assert [each.choice for found in load(store, run).reviews.values() for each in found][-1] == "approve"
        shutil.rmtree(place)
    assert seen == {"open", "edited"}
    assert at > 2
