"""Acceptance cases of resuming: what is kept of branches, checkpoints, failures, attempts (16 to 20, 22, 26)."""

from __future__ import annotations

from typing import Any

from pipeline import Pipeline, StepContext, step
from pipeline.records.codec import Record
from pipeline.records.fold import spent
from pipeline.records.kinds import CallEnded, CallStarted, MemoryApplied, RunEnded, StepCompleted, StepFailed
from pipeline.store.base import Store
from pipeline.store.reader import load, records
from tests.acceptance.cases.acting import KILLED, STEPS, Acting
from tests.acceptance.cases.dying_steps import CHAIN, PARALLEL
from tests.said import Cli

NO_LUCK = "ValueError: b has no luck"


def of_kind(acting: Acting, kind: type) -> list[Any]:
    return [record.fact for record in records(acting.store, acting.run) if isinstance(record.fact, kind)]


def test_case_16_a_crash_after_the_choice_goes_on_in_the_arm_that_was_chosen(acting: Acting, cli: Cli) -> None:
    (acting.home / "choice").write_text("left")
    acting.order("die-left")
    assert acting.start("CHOICE") == KILLED
    assert acting.ran() == ["choose", "left"]
    (acting.home / "choice").write_text("right")
    assert acting.resume("CHOICE").code == 0
    assert acting.ran() == ["left", "end"]
    head = next(iter(acting.store.heads())).document
    assert [row["step"] for row in head["completed_steps"] if row["status"] == "skipped"] == ["right"]


def test_case_16_a_crash_before_the_choice_chooses_by_what_was_recorded(acting: Acting) -> None:
    (acting.home / "choice").write_text("left")
    acting.order("die-before-choosing")
    assert acting.start("CHOICE") == KILLED
    assert acting.ran() == ["choose"]
    assert of_kind(acting, StepCompleted) == []
    (acting.home / "choice").write_text("right")
    assert acting.resume("CHOICE").code == 0
    assert acting.ran() == ["choose", "left", "end"]
    assert "right#1" not in acting.state.steps


def test_case_17_edges_that_were_chosen_start_exactly_their_targets(acting: Acting) -> None:
    acting.order("die-left")
    assert acting.start("PARALLEL") == KILLED
    assert set(acting.ran()) >= {"start", "left"}
    state = acting.state
    done = {run.node for run in state.steps.values() if run.status == "completed"}
    assert acting.resume("PARALLEL").code == 0
    again = acting.ran()
    assert sorted(again) == sorted({"left", "right", "join"} - done)
    assert again[-1] == "join"


def test_case_17_chosen_and_not_begun_is_pending(store: Store, acting: Acting) -> None:
    run = PARALLEL.run(store=store, options={"until": "start"}).run_id
    assert acting.ran() == ["start"]
    assert [edge for edge, _ in load(store, run).waiting] == ["start->left", "start->right"]
    assert PARALLEL.resume(run, store=store).status == "completed"
    assert sorted(acting.ran()[:2]) == ["left", "right"]


def test_case_17_a_join_behind_an_arm_that_was_skipped_does_not_stall(acting: Acting) -> None:
    (acting.home / "choice").write_text("left")
    acting.order("die-end")
    assert acting.start("CHOICE") == KILLED
    acting.ran()
    assert acting.resume("CHOICE").code == 0
    assert acting.ran() == ["end"]


def test_case_18_a_resumed_run_has_the_checkpoints_of_a_fresh_one(store: Store, acting: Acting) -> None:
    fresh = CHAIN.run(store=store).run_id
    acting.ran()
    acting.order("die-b")
    assert acting.start("CHAIN") == KILLED
    assert acting.ran() == ["a", "b"]
    acting.order("die-d")
    assert acting.killed_again("CHAIN") == KILLED
    assert acting.ran() == ["b", "c", "d"]
    assert [mark.path for mark in acting.state.checkpoints] == ["a#1", "b#1", "c#1"]
    assert acting.resume("CHAIN").code == 0
    assert acting.ran() == ["d"], "it goes on from the newest checkpoint, not from where it was first resumed"
    marks, whole = acting.state.checkpoints, load(store, fresh).checkpoints
    assert [mark.path for mark in marks] == [mark.path for mark in whole] == ["a#1", "b#1", "c#1", "d#1"]
    assert len({mark.id for mark in marks}) == 4


def test_case_19_a_branch_that_completed_beside_one_that_failed_is_kept_whole(store: Store, acting: Acting) -> None:
    acting.order("fail-right")
    failed = PARALLEL.run(store=store)
    assert (failed.status, sorted(acting.ran())) == ("failed", ["left", "right", "start"])
    left = load(store, failed.run_id).steps["left#1"]
    assert (left.status, left.outputs, left.context) == ("completed", {"text": "left"}, {"set-left": True})
    assert list(left.artifacts) == ["art-left"]
    acting.withdraw("fail-right")
    result = PARALLEL.resume(failed.run_id, store=store)
    assert (result.status, acting.ran()) == ("completed", ["right", "join"])
    assert result.outputs["join"] == {"arts": ["left", "right"], "context": ["set-left", "set-right"]}
    assert load(store, failed.run_id).steps["left#1"] == left


def test_case_20_a_step_that_raises_is_told_kept_as_a_boundary_and_ends_the_run_as_failed(
    acting: Acting, cli: Cli
) -> None:
    acting.order("fail-b")
    said = cli("run", f"{STEPS}:CHAIN", "--json")
    told = said.json()
    (event,) = [row for row in told if row["type"] == "step_failed"]
    assert (event["path"], event["error"]["type"], event["error"]["message"]) == ("b#1", "ValueError", NO_LUCK)
    assert (said.code, told[-1]["type"], told[-1]["status"], told[-1]["exit_code"]) == (6, "result", "failed", 6)
    assert "Traceback" not in said.err
    assert [row["status"] for row in cli("history", acting.run, "--json").json()] == ["completed", "failed"]
    (boundary,) = cli("history", acting.run, "--json").json()[1:]
    assert (boundary["path"], boundary["error"]["message"]) == ("b#1", NO_LUCK)
    assert len(boundary["id"]) == 32
    (end,) = of_kind(acting, RunEnded)
    assert end.status == "failed"
    # The record of the failure is durable before it is told, and before the run ends.
    kinds = [type(record.fact) for record in records(acting.store, acting.run)]
    assert kinds.index(StepFailed) < kinds.index(RunEnded)


def test_case_22_tries_that_were_used_before_a_crash_stay_used(acting: Acting, cli: Cli) -> None:
    acting.order("die-in-attempt-3")
    assert acting.program("retried") == KILLED
    assert acting.asked() == ["attempt 1", "attempt 2", "attempt 3"]
    assert [(fact.attempt, fact.retry) for fact in of_kind(acting, StepFailed)] == [(1, True), (2, True)]
    assert acting.program("retried") == 6
    assert acting.asked() == ["attempt 3"], "one try was left"
    failures = of_kind(acting, StepFailed)
    assert [(fact.attempt, fact.retry) for fact in failures] == [(1, True), (2, True), (3, False)]
    assert [fact.error["message"] for fact in failures] == [f"ATTEMPT {n} is not good enough" for n in (1, 2, 3)]
    # Every attempt is in the books: three with their tokens and dollars, the one that was cut off as an interval.
    started, ended = of_kind(acting, CallStarted), of_kind(acting, CallEnded)
    assert [fact.attempt for fact in started] == [1, 2, 3, 3]
    total = spent(acting.state)
    assert (len(ended), total.calls) == (3, 4)
    tokens = {key.outcome: sum(part.tokens.values()) for key, part in acting.state.spend.items()}
    assert set(tokens) == {"wasted", "open"}
    assert tokens["wasted"] == sum(total.tokens.values()) > 0
    assert total.usd > 0
    assert total.high > total.low == 0
    (shown,) = cli("status", acting.run, "--json").json()
    assert (shown["calls"], shown["steps"][0]["attempt"]) == (4, 3)
    assert shown["possibly_usd"] > 0


def _writes(acting: Acting) -> list[str]:
    return [line.partition("\t")[2] for line in (acting.home / "memory").read_text().splitlines()]


def test_case_26_pending_writes_to_a_memory_arrive_exactly_once(acting: Acting) -> None:
    acting.order("die-after-one", "die-after-two", "die-after-three", "die-note")
    for arrived in (["one"], ["one", "two"], ["one", "two", "three"]):
        assert acting.program("remembered") == KILLED
        assert _writes(acting) == arrived
        assert acting.state.unapplied
        assert acting.state.steps["learn#1"].status == "completed"
    assert acting.program("remembered") == KILLED
    assert acting.ran() == ["note"], "nothing begins before the memory has it all"
    assert acting.program("remembered") == 0
    assert (acting.ran(), _writes(acting)) == (["note"], ["one", "two", "three"])
    assert acting.state.unapplied == {}
    assert len(of_kind(acting, MemoryApplied)) == 1
    assert acting.state.steps["learn#1"].outputs == {"known": []}


def test_case_26_a_memory_that_refuses_gets_the_rest_first_when_the_run_goes_on(store: Store) -> None:
    class Picky:
        def __init__(self) -> None:
            self.kept: dict[str, str] = {}
            self.room = 1

        def read(self, query: str) -> list[tuple[str, str, float]]:
            return [(key, content, 1.0) for key, content in self.kept.items()]

        def write(self, type: str, content: str, scope: str, key: str) -> None:
            if key not in self.kept and len(self.kept) == self.room:
                raise OSError("full")
            self.kept[key] = content

    def learn(ctx: StepContext) -> dict[str, Any]:
        for name in ("one", "two"):
            ctx.memory.write("lesson", name)
        return {}

    seen: list[int] = []

    def after(ctx: StepContext) -> dict[str, Any]:
        seen.append(len(ctx.memory.read("")))
        return {}

    what, memory = Pipeline("picky", [step("learn")(learn), step("after")(after)]), Picky()
    services = {"memory": memory}
    first = what.run(store=store, services=services)
    assert (first.status, first.detail, seen) == ("in_progress", "interrupted", [])
    assert "full" in str(first.error)
    memory.room = 9
    assert what.resume(first.run_id, store=store, services=services).status == "completed"
    assert (list(memory.kept.values()), seen) == (["one", "two"], [2])
    journal: list[Record] = list(records(store, first.run_id))
    assert sum(isinstance(record.fact, MemoryApplied) for record in journal) == 1
