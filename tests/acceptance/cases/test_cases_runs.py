"""Acceptance cases of resuming: what goes on, what is kept and repeated, what a person must say (11–20, 22, 24, 26)."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pipeline import Answer, Outcome, Pipeline, Question, StepContext, step
from pipeline.records.fold import spent
from pipeline.records.kinds import CallEnded, CallStarted, MemoryApplied, RunEnded, StepCompleted, StepFailed
from pipeline.store.base import Store
from pipeline.store.reader import load, records
from tests.acceptance.cases.acting import KILLED, STEPS, Acting
from tests.acceptance.cases.dying_steps import CHAIN, GATE, PARALLEL
from tests.said import Cli
from tests.servers.billing import BillingServer
from tests.servers.replies import Responder, echo

NO_LUCK = "ValueError: b has no luck"


@pytest.fixture
def responder() -> Responder:
    return echo


def of_kind(acting: Acting, kind: type) -> list[Any]:
    return [record.fact for record in records(acting.store, acting.run) if isinstance(record.fact, kind)]


def test_case_11_18_after_kills_it_goes_on_from_the_newest_checkpoint_to_those_of_a_fresh_run(
    store: Store, acting: Acting
) -> None:
    fresh = CHAIN.run(store=store)
    assert acting.ran() == ["a", "b", "c", "d"]
    acting.order("die-b", "die-d")
    assert acting.start("CHAIN") == KILLED
    assert acting.ran() == ["a", "b"]
    assert acting.killed_again("CHAIN") == KILLED
    assert acting.ran() == ["b", "c", "d"]
    assert [mark.path for mark in acting.state.checkpoints] == ["a#1", "b#1", "c#1"]
    assert acting.resume("CHAIN").code == 0
    assert (acting.ran(), acting.output("d")) == (["d"], fresh.outputs["d"]["text"])
    marks, whole = acting.state.checkpoints, load(store, fresh.run_id).checkpoints
    assert [mark.path for mark in marks] == [mark.path for mark in whole] == ["a#1", "b#1", "c#1", "d#1"]
    assert len({mark.id for mark in marks}) == 4
    again = CHAIN.resume(fresh.run_id, store=store)
    assert (again.worked, again.outputs, acting.ran()) == (False, fresh.outputs, [])


def test_case_12_external_work_that_failed_is_done_again_and_never_passed_off_as_done(store: Store) -> None:
    tries: list[str] = []

    def outside(ctx: StepContext) -> Any:
        tries.append("raises" if not tries else "says so" if len(tries) == 1 else "works")
        if tries[-1] == "raises":
            raise OSError("no luck")
        if tries[-1] == "says so":
            return Outcome({"n": 0}, "fail", error={"type": "Bad", "message": "no luck"})
        return {"n": 1}

    seen: list[Any] = []

    def after(ctx: StepContext) -> dict[str, Any]:
        seen.append(ctx.outputs["b"]["n"])
        return {}

    what = Pipeline("abc", [step("a")(lambda ctx: {}), step("b", effect="external")(outside), step("c")(after)])
    result = what.run(store=store)
    for _ in range(2):
        assert (result.status, result.exit_code, seen) == ("failed", 6, [])
        assert load(store, result.run_id).steps["b#1"].status == "failed"
        assert "b" not in result.outputs
        result = what.resume(result.run_id, store=store)
    assert (result.status, tries, seen) == ("completed", ["raises", "says so", "works"], [1])


def test_case_13_external_work_that_was_cut_off_is_not_repeated_unasked(acting: Acting, cli: Cli) -> None:
    acting.order("die-send")
    assert acting.start("MAIL") == KILLED
    assert acting.ran() == ["draft", "send"]
    refused = acting.resume("MAIL")
    assert (refused.code, acting.ran()) == (6, [])
    for way in (f"mark-done {acting.run} --store", " send; ", "--retry-unknown", "--yes"):
        assert way in refused.err
    assert acting.state.resumes == 0, "nothing was recorded"
    said = cli("status", acting.run).out
    for words in ("? outcome unknown", "Unknown: send has side effects and was interrupted"):
        assert words in said
    assert cli("status", acting.run, "--json").json()[0]["unknown"] == ["send"]
    # A person says that it was done.
    assert cli("mark-done", acting.run, "send", "--output", "text=sent by hand; ").code == 0
    assert cli("status", acting.run, "--json").json()[0]["unknown"] == []
    assert acting.resume("MAIL").code == 0
    assert (acting.ran(), acting.output("note")) == (["note"], "sent by hand; note")
    assert acting.resume("MAIL", "--refresh", "read").code == 0
    assert acting.ran() == ["draft", "note"], "external work stands"


def test_case_13_what_may_be_repeated_is_repeated(acting: Acting, cli: Cli) -> None:
    acting.order("die-post")
    assert acting.start("POST") == KILLED
    assert "nknown" not in cli("status", acting.run).out
    acting.ran()
    assert acting.resume("POST").code == 0
    assert acting.ran() == ["post", "note"]


def test_case_13_a_task_that_writes_is_not_repeated_unasked_either(acting: Acting, cli: Cli) -> None:
    acting.order("die-keeps")
    assert acting.start("KEEP") == KILLED
    acting.ran()
    assert "Unknown: keeps/put has side effects" in cli("status", acting.run).out
    assert (acting.resume("KEEP").code, acting.ran()) == (6, [])
    assert acting.resume("KEEP", "--retry-unknown").code == 0
    assert acting.ran() == ["keeps", "note"]


def test_case_13_a_paid_call_that_was_cut_off_is_shown_as_possibly_spent(
    acting: Acting, cli: Cli, server: BillingServer
) -> None:
    begun = threading.Event()
    calling: list[subprocess.Popen[str]] = []

    def deadly(body: Mapping[str, Any], fault: str) -> str:
        begun.wait()
        os.kill(calling[0].pid, signal.SIGKILL)
        calling[0].wait()
        return "too late"

    server.responder = deadly
    calling.append(acting.started("PAID"))
    begun.set()
    assert acting.end(calling[0]) == KILLED
    (before,) = cli("status", acting.run, "--json").json()
    assert (before["cost_usd"], before["unknown"]) == (0, [])
    assert before["possibly_usd"] > 0
    assert "Possibly spent in addition: $0.00 to at most $" in cli("status", acting.run).out
    # It only costs, so it is asked again without a word; what it may have cost stays in the books.
    server.responder = echo
    assert acting.resume("PAID").code == 0
    (after,) = cli("status", acting.run, "--json").json()
    assert (len(server.seen), after["status"]) == (2, "completed")
    assert after["cost_usd"] > 0
    assert after["possibly_usd"] == before["possibly_usd"]


def test_case_14_a_gate_stays_shut_until_somebody_answers(acting: Acting, cli: Cli) -> None:
    assert acting.start("GATE") == 8
    assert acting.resume("GATE").code == 8
    assert "publish" not in acting.ran()
    assert "review" in cli("gates").out
    assert cli("answer", acting.run, "review", "yes").code == 0
    acting.order("fail-publish")
    assert acting.resume("GATE").code == 6
    acting.withdraw("fail-publish")
    assert acting.ran() == ["review", "publish"]
    assert acting.resume("GATE").code == 0
    assert acting.ran() == ["publish"], "nobody is asked again"
    assert acting.output("review") == "yes"


def test_case_14_a_no_ends_it_and_is_not_asked_about_again(acting: Acting, cli: Cli) -> None:
    class Nobody:
        def ask(self, question: Question) -> Answer | None:
            raise AssertionError("it is asked again")

    assert acting.start("GATE") == 8
    assert cli("answer", acting.run, "review", "no").code == 0
    refused = acting.resume("GATE")
    assert (refused.code, "The reviewer said no." in refused.err) == (6, True)
    result = GATE.resume(acting.run, store=acting.store, services={"interviewer": Nobody()})
    assert result.status == "failed"
    assert cli("gates").out.startswith("No open questions in the runs in files:")
    assert "publish" not in acting.ran()


class Effects:
    """A chain of a step of each effect class, and two readers: of the read step, and of none."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.fails = ""
        self.questions = 0
        self.world = 1
        classes = ["pure", "read", "write", "external", "human"]
        specs = [step(name, effect=name)(self._body(name)) for name in classes]
        specs.append(step("reader", effect="pure")(self._body("reader")))
        specs.append(step("other", effect="pure")(self._body("other")))
        self.pipeline = Pipeline("effects", specs)

    def ask(self, question: Question) -> Answer | None:
        self.questions += 1
        return Answer("yes")

    def _body(self, name: str) -> Callable[[StepContext], dict[str, Any]]:
        def body(ctx: StepContext) -> dict[str, Any]:
            self.ran.append(name)
            if name == self.fails:
                raise ValueError("no luck")
            if name == "human":
                return {"said": ctx.ask_person("Well?", ["yes", "no"]).choice}
            if name == "reader":
                return {"of": ctx.outputs["read"]["world"]}
            return {"world": self.world} if name == "read" else {"of": name}

        return body


ALL = ["pure", "read", "write", "external", "human", "reader", "other"]


def test_case_15_completed_work_of_every_effect_class_is_kept_and_reads_are_refreshed_on_request(store: Store) -> None:
    effects = Effects()
    effects.fails = "other"
    services = {"interviewer": effects}
    run = effects.pipeline.run(store=store, services=services).run_id
    assert effects.ran == ALL
    for fails, ran, status in (("other", ["other"], "failed"), ("", ["other"], "completed"), ("", [], "completed")):
        effects.ran, effects.fails = [], fails
        result = effects.pipeline.resume(run, store=store, services=services)
        assert (effects.ran, result.status) == (ran, status)
    # A world that is another is read again, with what depends on it; one that is as it was makes nothing else again.
    effects.world = 2
    for ran in (["read", "reader"], ["read"]):
        effects.ran = []
        result = effects.pipeline.resume(run, store=store, services=services, refresh=["read"])
        assert (effects.ran, result.status, result.outputs["reader"]) == (ran, "completed", {"of": 2})
    assert effects.questions == 1


def test_case_16_a_crash_before_or_after_the_choice_keeps_to_what_was_recorded(acting: Acting) -> None:
    for order, first, again in (
        ("die-left", ["choose", "left"], ["left", "end"]),
        ("die-before-choosing", ["choose"], ["choose", "left", "end"]),
    ):
        (acting.home / "choice").write_text("left")
        acting.order(order)
        assert acting.start("CHOICE") == KILLED
        assert acting.ran() == first
        assert len(of_kind(acting, StepCompleted)) == len(first) - 1
        (acting.home / "choice").write_text("right")
        assert acting.resume("CHOICE").code == 0
        assert acting.ran() == again
        head = next(iter(acting.store.heads())).document
        assert [row["step"] for row in head["completed_steps"] if row["status"] == "skipped"] == ["right"]


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


def test_case_24_a_completed_run_is_left_as_it_is_and_gives_its_result(
    acting: Acting, cli: Cli, server: BillingServer
) -> None:
    assert acting.start("PAID") == 0
    assert (acting.ran(), len(server.seen)) == (["note"], 1)
    (before,) = cli("status", acting.run, "--json").json()
    for _ in range(2):
        said = acting.resume("PAID", "--json")
        result = said.json()[-1]
        assert (said.code, result["status"], result["run"]) == (0, "completed", acting.run)
        assert result["cost_usd"] == before["cost_usd"]
    assert (acting.ran(), len(server.seen)) == ([], 1)
    assert cli("status", acting.run, "--json").json()[0] == before


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
