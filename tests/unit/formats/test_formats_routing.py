"""Where a visit leads: the choice of an edge, attempts, failures, goal gates, limits of loops, restarts."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.dot.parser import parse
from pipeline.engine.step import StepContext
from pipeline.errors import CredentialMissing, ModelRejected
from pipeline.formats.attractor.outcome import NodeOutcome, failure
from pipeline.formats.attractor.visit_end import is_transient, most_retries, wait_seconds
from tests.unit.formats.acting import ENDS, Play, Said, played

RED = failure("red")


def raising(error: Exception, times: int = 100) -> Said:
    """A handler that raises so often, then succeeds."""
    left = [error] * times

    def work(ctx: StepContext) -> Any:
        if left:
            raise left.pop()
        return NodeOutcome()

    return work


def looking(seen: list[dict[str, Any]], **updates: Any) -> Said:
    """A handler that keeps what it sees, and sets some keys."""

    def work(ctx: StepContext) -> NodeOutcome:
        seen.append(dict(ctx.place.seen))
        return NodeOutcome(context_updates=updates)

    return work


# One visit's edge


def took(edges: str, said: Said) -> tuple[str, str]:
    """Where node w led by these edges, and why; a and b lead to the exit."""
    play, _ = played(f"{ENDS}start -> w\n{edges}\na -> exit\nb -> exit", {"w": said})
    run = play.state.steps["w#1"]
    return (run.edges[0] if run.edges else "", run.reason)


@pytest.mark.parametrize(
    ("edges", "said", "edge", "reason"),
    [
        # A true condition beats every plain edge; of several the heaviest wins, then the name.
        ('w -> a [weight=9, label=go]\nw -> b [condition="outcome=success"]', NodeOutcome(preferred_label="go"),
         "w->b", "condition"),
        ('w -> b [condition="outcome=success", weight=2]\nw -> a [condition="outcome=success"]', "success",
         "w->b", "condition"),
        ('w -> b [condition="outcome=success"]\nw -> a [condition="outcome=success"]', "success", "w->a", "condition"),
        # A preferred label is compared without its key, case and spaces; it may be a target.
        ('w -> a [weight=5]\nw -> b [label="[Y]  Yes,  GO"]', NodeOutcome(preferred_label="yes, go"),
         "w->b", "preferred_label"),
        ("w -> a\nw -> b", NodeOutcome(preferred_label="b"), "w->b", "preferred_label"),
        ("w -> a [label=x]\nw -> b", NodeOutcome(preferred_label="x", suggested_next_ids=("b",)),
         "w->a", "preferred_label"),
        # Suggested nodes are tried in order; then weight and name decide.
        ("w -> a [weight=5]\nw -> b", NodeOutcome(suggested_next_ids=("nowhere", "b", "a")), "w->b", "suggested"),
        ("w -> a\nw -> b [weight=1]", "success", "w->b", "weight"),
        ("w -> b\nw -> a", "success", "w->a", "id"),
        ("w -> b\nstart -> a [weight=-1]", "success", "w->b", "only"),
        # Words of the graph's own route; one that no edge asks for takes the edge for failures, or none.
        ('w -> a [condition="outcome=yes"]\nw -> b [condition="outcome=fail"]', "maybe", "w->b", "condition"),
        ('w -> a [condition="outcome=needs_dod"]\nw -> b [condition="outcome=has_dod"]', "has_dod",
         "w->b", "condition"),
        ('w -> a [condition="outcome=yes"]\nstart -> b [weight=-1]', "no", "", "failed"),
        # Parallel edges between two nodes are told apart.
        ('w -> a [condition="outcome=x"]\nw -> a [condition="outcome=y"]\nw -> b', "y", "w->a#2", "condition"),
        # Conditions see the context as text.
        *(
            (f'w -> a\nw -> b [condition="{condition}"]', NodeOutcome(context_updates=updates), "w->b", "condition")
            for condition, updates in dict[str, dict[str, Any]]({
                "context.kind=new": {"kind": "new"}, "kind=new": {"kind": "new"}, "context.ready=true": {"ready": True},
                "context.count=3": {"count": 3}, "ready": {"ready": True}, "context.missing=''": {},
                "context.list CONTAINS ab": {"list": ["xab"]}, "context.last_stage=w && current_node=w": {},
            }).items()
        ),
    ],
)  # fmt: skip
def test_edge_that_is_taken_and_why(edges: str, said: Said, edge: str, reason: str) -> None:
    assert took(edges, said) == (edge, reason)


# Whole routes

DIAMOND = """start -> w -> gate
gate [shape=diamond]
gate -> exit [condition="outcome=success"]
gate -> mend [condition="outcome!=success"]
mend -> w"""
#: The gate's failure is routed on, so that it is the exit that asks.
GATE = """start -> plan -> review
review [goal_gate=true, retry_target=plan]
review -> exit
review -> exit [condition="outcome!=success"]"""
#: A failure of w goes back to p.
BACK = "w [retry_target=p]\nstart -> p -> w -> exit"
#: What w comes to beside success has an edge.
FIX = 'start -> w\nw -> exit\nw -> b [condition="outcome=fail"]\nb -> exit'
RESTART = """goal="ship"
start -> plan -> work
work -> exit [condition="outcome=success"]
work -> plan [condition="outcome!=success", loop_restart=true]"""

#: What is shown: the graph, what its nodes come to, the visits in order; "!": the run fails.
ROUTES: dict[str, tuple[str, dict[str, Said], str]] = {
    # Failures
    "no plain edge takes a failure": ("start -> w -> v -> exit", {"w": RED}, "start w !"),
    "an edge whose condition accepts it does": (FIX, {"w": RED}, "start w b exit"),
    "an error that is raised is a failure": (FIX, {"w": raising(ValueError("boom"))}, "start w b exit"),
    "its kind can be asked for": (
        'start -> w\nw -> exit [condition="outcome=fail && context.failure_class=deterministic"]',
        {"w": raising(ModelRejected("too long"))}, "start w exit",
    ),
    "continue_on_fail goes on": ("w [continue_on_fail=true]\nstart -> w -> v -> exit", {"w": "fail"}, "start w v exit"),
    "an edge for failures beats retry targets": (f"w [retry_target=start]\n{FIX}", {"w": RED}, "start w b exit"),
    "the first retry target that there is": (
        "w [retry_target=nowhere, fallback_retry_target=q]\nstart -> p -> q -> w -> exit\nretry_target=p",
        {"w": [RED, "success"]}, "start p q w q w exit",
    ),
    "the graph's retry target last": (
        "retry_target=p\nstart -> p -> w -> exit", {"w": [RED, "success"]}, "start p w p w exit",
    ),
    **{
        f"no jump mends {kind}": ("w [retry_target=start]\nstart -> w -> exit", {"w": failure("no", kind)}, "start w !")
        for kind in ("auth", "billing", "quota")
    },
    # Equal failures
    "three equal failures end it": (BACK, {"w": lambda ctx: failure(f"line {ctx.visit}: id deadbeef{ctx.visit}12")},
                                    "start p w p w p w !"),
    "failures that differ do not": (
        BACK, {"w": [*(failure(f"the {word}") for word in ("moon", "sun", "sea", "sky")), NodeOutcome()]},
        "start p w p w p w p w p w exit",
    ),
    "failures differ by what a tool wrote": (
        BACK, {"w": [*(failure("red", context_updates={"tool.output": f"test_{name}"}) for name in "abc"), "success"]},
        "start p w p w p w p w exit",
    ),
    "transient ones are not counted": (
        BACK, {"w": [*[failure("net", "transient_infra")] * 4, "success"]}, "start p w p w p w p w p w exit",
    ),
    "the limit is an attribute": (f"loop_restart_signature_limit=2\n{BACK}", {"w": RED}, "start p w p w !"),
    "equal failures that an edge accepts": (
        'start -> w\nw -> fix [condition="outcome=fail"]\nfix -> w\nw -> exit', {"w": RED}, "start w fix w fix w !",
    ),
    # Diamonds
    "a diamond has the outcome of what led to it": (
        DIAMOND, {"w": ["partial_success", "success"]}, "start w gate mend w gate exit",
    ),
    "a failure goes to a diamond that has an edge for it": (
        f"default_max_retries=2\n{DIAMOND}", {"w": [failure("red", "deterministic"), "success"]},
        "start w gate mend w gate exit",
    ),
    "but to no other": (
        'start -> w -> d\nd [shape=diamond]\nd -> a [label="go"]\nd -> b\na -> exit\nb -> exit', {"w": RED},
        "start w !",
    ),
    "a plain edge beside conditions is its else": (
        'start -> w -> d\nd [shape=diamond]\nd -> exit [condition="outcome=success"]\nd -> b\nb -> exit', {"w": RED},
        "start w d b exit",
    ),
    "through diamonds behind each other": (
        'start -> w -> d -> e\nd [shape=diamond]\ne [shape=diamond]\ne -> exit [condition="outcome=success"]\n'
        'e -> b [condition="outcome=fail"]\nb -> exit', {"w": RED}, "start w d e b exit",
    ),
    "diamonds that lead to each other are no way": (
        "start -> w -> d -> e -> d\nd [shape=diamond]\ne [shape=diamond]\nd -> exit", {"w": RED}, "start w !",
    ),
    "labels alone go by the outcome": (
        'start -> w -> d\nd [shape=diamond]\nd -> a [label="fail"]\nd -> b [label="Success"]\na -> exit\nb -> exit',
        {"w": RED}, "start w d a exit",
    ),
    "a preferred label chooses behind": (
        'start -> w -> d\nd [shape=diamond]\nd -> a [label="A"]\nd -> b [label="B"]\na -> exit\nb -> exit',
        {"w": NodeOutcome(preferred_label="b")}, "start w d b exit",
    ),
    "which node did work last": (
        'd [shape=diamond]\nstart -> a -> d\nb -> d\nd -> b [condition="context.last_stage=a"]\n'
        'd -> exit [condition="last_stage=b"]', {}, "start a d b d exit",
    ),
    # The outcome retry
    "retry repeats the attempt": (f"w [max_retries=1]\n{FIX}", {"w": ["retry", "success"]}, "start w exit"),
    "retry out of attempts fails": (f"w [max_retries=1]\n{FIX}", {"w": "retry"}, "start w b exit"),
    "retry out of attempts may be partial": (
        "w [allow_partial=true]\nstart -> w -> exit", {"w": "retry"}, "start w exit",
    ),
    "retry that an edge asks for is a word": (
        'w [max_retries=2]\nstart -> w\nw -> exit\nw -> b [condition="outcome=retry"]\nb -> w',
        {"w": ["retry", "success"]}, "start w b w exit",
    ),
    "retry that a diamond asks for": (
        'default_max_retries=2\nstart -> w -> d\nd [shape=diamond]\nd -> exit [condition="outcome=success"]\n'
        'd -> b [condition="outcome=retry"]\nb -> w', {"w": ["retry", "success"]}, "start w d b w d exit",
    ),
    # Goal gates
    "the exit goes back for a gate": (
        GATE, {"review": [failure("thin"), failure("thinner"), "success"]},
        "start plan review exit plan review exit plan review exit",
    ),
    "partial success satisfies": (GATE, {"review": "partial_success"}, "start plan review exit"),
    "three times, no word of its own satisfies": (GATE, {"review": "pass"}, "start" + " plan review exit" * 4 + " !"),
    "max_retries of a gate": (
        GATE.replace("goal_gate", "max_retries=1, goal_gate"), {"review": "no"},
        "start" + " plan review exit" * 2 + " !",
    ),
    "a gate without a way back": (
        GATE.replace(", retry_target=plan", ""), {"review": "no"}, "start plan review exit !",
    ),
    "the graph's targets serve its gates": (
        GATE.replace(", retry_target=plan", "") + "\nfallback_retry_target=start", {"review": ["no", "success"]},
        "start plan review exit start plan review exit",
    ),
    "a gate not visited is not asked about": (
        f'{GATE}\nplan -> exit [condition="outcome=skip_it"]', {"plan": "skip_it", "review": "fail"}, "start plan exit",
    ),
    "the first gate declared decides": (
        "one [goal_gate=true, retry_target=start]\ntwo [goal_gate=true, retry_target=one]\nstart -> one -> two -> exit",
        {"two": ["no", "success"], "one": ["no", "no", "success"]},
        "start" + " one two exit start" * 2 + " one two exit",
    ),
    "the newest visit of a gate counts": (
        "start -> plan -> review\nreview [goal_gate=true, retry_target=plan]\nreview -> exit\n"
        'review -> plan [condition="outcome=fail"]', {"review": [failure("thin"), "success"]},
        "start plan review plan review exit",
    ),
    "a gate that fails goes back by itself, as often": (
        "start -> plan -> review -> exit\nreview [goal_gate=true, retry_target=plan]", {"review": failure("thin")},
        "start" + " plan review" * 4 + " !",
    ),
    "the second way back once the first is used up": (
        "start -> a -> b -> review\na [max_visits=2]\n"
        "review [goal_gate=true, retry_target=a, fallback_retry_target=b]\nreview -> exit",
        {"review": ["no", "no", "success"]}, "start a b review exit a b review exit b review exit",
    ),
    "a gate without a verdict has not been passed": (
        "w [goal_gate=true]\nstart -> w -> exit", {"w": NodeOutcome("")}, "start w !",
    ),
    # Limits of loops
    "a loop that only its name prefers is left": (
        "max_node_visits=3\nstart -> a\na -> b\nb -> a\nb -> exit", {}, "start a b a b a b exit",
    ),
    "every loop ends": ("start -> a\na -> b\nb -> a\nb -> exit", {}, "start" + " a b" * 100 + " exit"),
    "also by failing": (
        'start -> a\na -> a [condition="outcome=more"]\na -> exit', {"a": "more"}, "start" + " a" * 100 + " !",
    ),
    "a limit fails the visit that would go on": (
        'start -> w\nw -> fix [condition="outcome=redo"]\nfix [max_visits=2]\nfix -> w\nw -> exit', {"w": "redo"},
        "start w fix w fix w !",
    ),
    "an edge for failures takes it, no jump does": (
        'start -> w\nw [retry_target=start]\nw -> fix [condition="outcome=redo"]\nfix [max_visits=1]\nfix -> w\n'
        'w -> a [condition="outcome=fail"]\na -> exit', {"w": "redo"}, "start w fix w a exit",
    ),
    "a failure whose edge is used up": (
        'start -> w\nw [retry_target=start]\nw -> fix [condition="outcome=fail"]\nfix [max_visits=1]\nfix -> w\n'
        "w -> exit", {"w": [RED, failure("blue")]}, "start w fix w !",
    ),
    "an edge's own limit": (
        "start -> w\nw -> a [weight=1, max_visits=2]\na -> w\nw -> exit", {}, "start w a w a w exit",
    ),
    # Restarts
    "restarts are five": (RESTART, {"work": "again"}, "start" + " plan work" * 6 + " !"),
    "only what may pass by itself restarts": (
        RESTART, {"work": failure("red", "deterministic")}, "start plan work !",
    ),
    "what may pass restarts": (
        RESTART, {"work": [failure("net", "transient_infra"), "success"]}, "start plan work plan work exit",
    ),
    "a condition asks how often": (
        'start -> work\nwork -> start2 [condition="context.internal.loop_restart_count=0", loop_restart=true]\n'
        'start2 -> work\nwork -> exit [condition="context.internal.loop_restart_count!=0"]', {},
        "start work start2 work exit",
    ),
    "gates from before a restart are not asked about": (
        'start -> gate\ngate [goal_gate=true]\ngate -> b\nb -> start2 [condition="outcome=again", loop_restart=true]\n'
        "b -> exit\nstart2 -> b", {"gate": "no", "b": ["again", "success"]}, "start gate b start2 b exit",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "script", "shown"), ROUTES.values(), ids=ROUTES)
def test_route(text: str, script: dict[str, Said], shown: str) -> None:
    play, result = played(ENDS + text, script)
    assert " ".join([*play.order, *(["!"] if result.status == "failed" else [])]) == shown
    if result.status == "failed":
        assert result.exit_code == 6
        assert play.go(model=False).status == "failed", "what ended it is in the records"
        assert len(play.order) == len(shown.split()) - 1


# What is recorded of it


def test_failure_is_recorded_with_its_edge_and_its_class() -> None:
    play, _ = played(ENDS + FIX, {"w": failure("no", "weird")})
    run = play.state.steps["w#1"]
    assert (run.status, run.outcome, run.reason, run.context["failure_class"]) == (
        "failed",
        "fail",
        "condition",
        "weird",
    )
    play, _ = played(ENDS + BACK, {"w": [RED, "success"]})
    assert (list(play.state.steps["w#1"].edges), play.reason("w#1")) == (["w->p#retry"], "retry_target")
    play, _ = played(ENDS + DIAMOND, {"w": [RED, "success"]})
    gate = play.state.steps["gate#1"]
    assert (gate.status, gate.error and gate.error["message"], gate.attempt) == ("failed", "red", 1)
    assert (play.reason("w#1"), play.reason("gate#1")) == ("failure", "condition")


def test_failure_and_its_class_are_in_the_context_until_something_succeeds() -> None:
    seen: list[dict[str, Any]] = []
    text = f'{ENDS}start -> w\nw -> b [condition="outcome!=success"]\nb -> c -> exit'
    played(text, {"w": failure("no", "weird"), "b": looking(seen), "c": looking(seen)})
    told = [tuple(each[key] for key in ("outcome", "failure_reason", "failure_class")) for each in seen]
    assert told == [("fail", "no", "weird"), ("success", "", "")]


def test_stale_preferred_label_decides_nothing_later() -> None:
    text = f'{ENDS}start -> w\nw -> v [label="B"]\nv -> a [label="A"]\nv -> b [label="B"]\na -> exit\nb -> exit'
    play, _ = played(text, {"w": NodeOutcome(preferred_label="B")})
    assert list(play.state.steps["v#1"].edges) == ["v->a"]
    assert play.state.context["preferred_label"] == ""


def test_node_without_a_verdict_has_succeeded_and_auto_status_says_so() -> None:
    play, _ = played(f"{ENDS}w [auto_status=true]\nstart -> w -> exit", {"w": NodeOutcome("")})
    assert (play.state.steps["w#1"].outcome, play.state.steps["w#1"].outputs["notes"][:11]) == (
        "success",
        "auto-status",
    )


def test_gates_are_told_in_the_context_and_in_the_checkpoint() -> None:
    play, _ = played(ENDS + GATE, {"review": ["no", "success"]})
    assert play.state.steps["review#1"].context["_goal_gates"] == {"review": "unsatisfied"}
    assert play.state.context["_goal_gates"] == {"review": "satisfied"}
    leave = play.state.steps["exit#1"]
    assert (list(leave.edges), leave.reason) == (["exit->plan#gate:review"], "goal_gate")
    assert play.told("goal_gate_status") == {"review": "satisfied"}
    assert played(ENDS + GATE, {"review": "no"})[0].told("goal_gate_status") == {"review": "unsatisfied"}


def test_restart_keeps_what_is_known_of_the_graph_and_the_keys_that_it_names() -> None:
    seen: list[dict[str, Any]] = []
    script: dict[str, Said] = {"plan": looking(seen, mine=1, yours=2), "work": ["again", "success"]}
    played(ENDS + RESTART, script)
    assert {key for key in seen[1] if not key.startswith("graph.")} == set()
    assert (seen[1]["graph.goal"], seen[0]["current_node"]) == ("ship", "start")
    played(f'{ENDS}loop_restart_persist_keys="mine, other"\n{RESTART}', {**script, "work": ["again", "success"]})
    assert (seen[3].get("mine"), seen[3].get("yours")) == (1, None)


# Attempts


def attempts(attributes: str, said: Said) -> tuple[Play, list[int]]:
    play, _ = played(f"{ENDS}w [{attributes}]\nstart -> w -> exit", {"w": said})
    return play, [attempt for path, attempt in play.called if path.startswith("w#")]


def retries(node: str, graph: str = "", type: str = "codergen") -> int:
    dot = parse(f"digraph g {{ {graph}\nw [{node}] }}")
    return most_retries(dot, dot.nodes["w"], type)


def waits(node: str, graph: str = "", count: int = 4) -> list[float]:
    dot = parse(f"digraph g {{ {graph}\nw [{node}] }}")
    return [wait_seconds(dot, dot.nodes["w"], "w#1", attempt) for attempt in range(1, count + 1)]


@pytest.mark.parametrize(
    ("node", "graph", "most"),
    [
        ("", "", 0), ("max_retries=2", "", 2), ('max_retries="2"', "", 2), ("", "default_max_retries=3", 3),
        ("", 'default_max_retry="3"', 3), ("max_retries=0", "default_max_retries=3", 0), ("max_retries=-1", "", 0),
        ("retry_policy=standard", "default_max_retries=1", 4), ("retry_policy=standard, max_retries=1", "", 1),
        ("", "retry_policy=patient", 2), ("", "retry_policy=patient; default_max_retries=0", 0),
        ("retry_policy=none", "default_max_retries=3", 0),
    ],
)  # fmt: skip
def test_retries_are_the_nodes_own_then_the_graphs_then_none(node: str, graph: str, most: int) -> None:
    assert retries(node, graph) == most


def test_default_of_the_graph_is_not_for_nodes_that_do_no_work_and_a_diamond_is_never_tried_again() -> None:
    for type in ("start", "exit", "parallel", "parallel.fan_in"):
        assert (retries("", "default_max_retries=3", type), retries("max_retries=1", "", type)) == (0, 1)
    assert retries("max_retries=3", "default_max_retries=3", "conditional") == 0


@pytest.mark.parametrize(
    ("node", "graph", "expected"),
    [
        ("", "", [0.2, 0.4, 0.8, 1.6]), ("retry_policy=aggressive", "", [0.5, 1.0, 2.0, 4.0]),
        ("retry_policy=linear", "", [0.5] * 4), ("retry_policy=none", "", [0.0] * 4),
        ("", "retry_policy=patient", [2.0, 6.0, 18.0, 54.0]),
    ],
)  # fmt: skip
def test_waits_grow_as_the_preset_says_by_half_up_or_down(node: str, graph: str, expected: list[float]) -> None:
    for wait, seconds in zip(waits(node, graph), expected, strict=True):
        assert seconds * 0.5 <= wait <= min(seconds * 1.5, 60.0)


def test_waits_have_the_jitter_that_is_said_and_are_the_same_in_every_process() -> None:
    assert waits("retry_backoff=linear, retry_jitter=0") == [0.5] * 4
    assert waits("retry_backoff=exponential, retry_jitter=0", count=3) == [0.2, 0.4, 0.8]
    assert all(0.45 <= wait <= 0.55 for wait in waits("retry_backoff=linear"))
    assert waits("retry_policy=patient") == waits("retry_policy=patient")
    assert max(waits("retry_policy=patient", count=40)) <= 60.0
    assert len(set(waits("retry_policy=linear", count=20))) > 10, "chance differs by attempt"


@pytest.mark.parametrize(
    ("said", "made"),
    [
        (["fail", "fail", "success"], [1, 2, 3]), ("fail", [1, 2, 3]), (raising(ValueError("boom"), 1), [1, 2]),
        (failure("no", "deterministic"), [1]), (failure("no", "auth"), [1]), (failure("no", "validation"), [1]),
        (raising(CredentialMissing("no key")), [1]),
    ],
)  # fmt: skip
def test_attempts_are_repeated_until_used_up_but_for_what_would_come_again(said: Said, made: list[int]) -> None:
    play, tried = attempts("max_retries=2", said)
    assert (tried, len(play.clock.waits)) == (made, len(made) - 1)


def test_failed_run_that_is_resumed_tries_the_failed_node_again() -> None:
    play, tried = attempts("", ["fail", "success"])
    assert (play.state.status, tried) == ("failed", [1])
    assert play.go(model=False).status == "completed"
    assert play.called == [("start#1", 1), ("w#1", 1), ("w#1", 2), ("exit#1", 1)]


def test_retries_in_use_are_told_and_start_anew_with_a_success() -> None:
    text = f'{ENDS}w [max_retries=1]\nstart -> w\nw -> exit\nw -> b [condition="outcome=fail"]\nb -> w'
    play, _ = played(text, {"w": ["fail", "fail", "success"]})
    first, second = play.state.steps["w#1"], play.state.steps["w#2"]
    assert (first.context["internal.retry_count.w"], second.context["internal.retry_count.w"]) == (1, 0)
    assert attempts("max_retries=2", "fail")[0].told("node_retries") == {"w": 3}, "a resume makes one more attempt"


def test_failures_that_may_pass_by_themselves_are_told_from_others() -> None:
    assert [is_transient(kind) for kind in ("transient_infra", "timeout", "", "deterministic")] == [
        True,
        True,
        False,
        False,
    ]
