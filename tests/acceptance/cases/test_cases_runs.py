"""Acceptance cases of resuming: what goes on, what is repeated, what a person must say first (11 to 15, 24)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pipeline import Answer, Outcome, Pipeline, Question, StepContext, step
from pipeline.store.base import Store
from pipeline.store.reader import load
from pipeline.travel.fork import fork_run
from tests.acceptance.cases.acting import KILLED, Acting
from tests.acceptance.cases.dying_steps import CHAIN, GATE
from tests.said import Cli
from tests.servers.billing import BillingServer
from tests.servers.replies import Responder, echo


@pytest.fixture
def responder() -> Responder:
    return echo


def test_case_11_from_the_checkpoint_at_a_step_the_ones_after_it_run_in_order(store: Store, acting: Acting) -> None:
    whole = CHAIN.run(store=store)
    assert acting.ran() == ["a", "b", "c", "d"]
    child = fork_run(store, whole.run_id, at="a")
    assert acting.ran() == []
    result = CHAIN.resume(child, store=store)
    assert (result.status, acting.ran()) == ("completed", ["b", "c", "d"])
    assert result.outputs == whole.outputs


def test_case_11_after_a_kill_in_a_step_it_and_the_ones_after_it_run_in_order(acting: Acting) -> None:
    acting.order("die-b")
    assert acting.start("CHAIN") == KILLED
    assert acting.ran() == ["a", "b"]
    assert acting.resume("CHAIN").code == 0
    assert acting.ran() == ["b", "c", "d"]
    assert acting.output("d") == "abcd"


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
    assert "send has side effects and was interrupted; whether they happened is unknown" in refused.err
    for way in (f"mark-done {acting.run} send", "--retry-unknown", "--yes"):
        assert way in refused.err
    assert acting.state.resumes == 0, "nothing was recorded"
    said = cli("status", acting.run)
    assert "? outcome unknown" in said.out
    assert "Unknown: send has side effects and was interrupted" in said.out
    assert f"mark-done {acting.run} send" in said.out
    assert cli("status", acting.run, "--json").json()[0]["unknown"] == ["send"]
    assert acting.resume("MAIL", "--retry-unknown").code == 0
    assert acting.ran() == ["send", "note"]
    assert cli("status", acting.run, "--json").json()[0]["unknown"] == []


def test_case_13_a_person_says_that_it_was_done(acting: Acting, cli: Cli) -> None:
    acting.order("die-send")
    assert acting.start("MAIL") == KILLED
    assert cli("mark-done", acting.run, "send", "--output", "text=sent by hand; ").code == 0
    assert "end unknown" not in cli("status", acting.run).out
    acting.ran()
    assert acting.resume("MAIL").code == 0
    assert (acting.ran(), acting.output("note")) == (["note"], "sent by hand; note")


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
    for _ in range(2):
        refused = acting.resume("KEEP")
        assert (refused.code, acting.ran()) == (6, [])
        assert "--retry-unknown" in refused.err
        assert "Unknown: keeps/put" in cli("status", acting.run).out
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
    for _ in range(2):
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
    for _ in range(2):
        refused = acting.resume("GATE")
        assert (refused.code, "The reviewer said no." in refused.err) == (6, True)
        result = GATE.resume(acting.run, store=acting.store, services={"interviewer": Nobody()})
        assert result.status == "failed"
        assert cli("gates").out.startswith("No open questions in the runs in files:")
    assert "publish" not in acting.ran()


def test_case_14_an_answer_survives_a_kill(acting: Acting, cli: Cli) -> None:
    acting.start("GATE")
    cli("answer", acting.run, "review", "yes")
    acting.order("die-publish")
    assert acting.killed_again("GATE") == KILLED
    acting.ran()
    assert acting.resume("GATE", "--retry-unknown").code == 0
    assert acting.ran() == ["publish"]


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


def test_case_15_completed_work_of_every_effect_class_is_kept(store: Store) -> None:
    effects = Effects()
    effects.fails = "other"
    services = {"interviewer": effects}
    run = effects.pipeline.run(store=store, services=services).run_id
    assert effects.ran == ALL
    for fails, ran, status in (("other", ["other"], "failed"), ("", ["other"], "completed"), ("", [], "completed")):
        effects.ran, effects.fails = [], fails
        result = effects.pipeline.resume(run, store=store, services=services)
        assert (effects.ran, result.status) == (ran, status)
    assert effects.questions == 1


def test_case_15_reads_are_refreshed_on_request_with_what_depends_on_them(store: Store) -> None:
    effects = Effects()
    services = {"interviewer": effects}
    run = effects.pipeline.run(store=store, services=services).run_id
    effects.ran, effects.world = [], 2
    result = effects.pipeline.resume(run, store=store, services=services, refresh=["read"])
    assert (effects.ran, result.status, result.outputs["reader"]) == (["read", "reader"], "completed", {"of": 2})
    # A world that is as it was makes nothing else again.
    effects.ran = []
    effects.pipeline.resume(run, store=store, services=services, refresh=["read"])
    assert (effects.ran, effects.questions) == (["read"], 1)


def test_case_15_refresh_through_the_command_line(acting: Acting) -> None:
    assert acting.start("MAIL") == 0
    assert acting.ran() == ["draft", "send", "note"]
    assert acting.resume("MAIL").code == 0
    assert acting.ran() == []
    assert acting.resume("MAIL", "--refresh", "read").code == 0
    assert acting.ran() == ["draft", "note"], "external work stands"


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


def test_case_24_its_outputs_come_back_whole(store: Store, acting: Acting) -> None:
    whole = CHAIN.run(store=store)
    acting.ran()
    again = CHAIN.resume(whole.run_id, store=store)
    assert (again.exit_code, again.worked, json.dumps(again.outputs)) == (0, False, json.dumps(whole.outputs))
    assert acting.ran() == []
