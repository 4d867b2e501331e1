"""Fan-outs: where branches are gathered, what they see, join policies, the best of them, a resume in their midst."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline.dot.parser import parse
from pipeline.engine.step import StepContext
from pipeline.formats.attractor.handlers.fan import RESULTS
from pipeline.formats.attractor.outcome import NodeOutcome, failure
from pipeline.formats.attractor.regions import Regions
from pipeline.llm.base import Request
from tests.unit.formats.acting import ENDS, Act, Play, Said, played, said

RED = failure("red")

# Where branches are gathered

SHAPES = {"P": "component", "Q": "component", "R": "component", "J": "tripleoctagon", "K": "tripleoctagon"}


def regions(edges: str) -> Regions:
    """Edges "s>a a>b"; the nodes' first letters say what they are; s starts, e ends."""
    pairs = [pair.split(">") for pair in edges.split()]
    shapes = {**SHAPES, "s": "Mdiamond", "e": "Msquare"}
    lines = [f"{name} [shape={shapes.get(name[0], 'box')}]" for name in dict.fromkeys(edges.replace(">", " ").split())]
    dot = parse("digraph g {\n" + "\n".join([*lines, *(f"{source} -> {target}" for source, target in pairs)]) + "\n}")
    return Regions(dot, {name: dot.kind(name) for name in dot.nodes})


@pytest.mark.parametrize(
    ("edges", "gathered"),
    [
        # The nearest fan-in of all branches; an inner fan-out has the inner one, or ends in the outer one.
        ("s>P P>a P>b a>c c>J b>J J>Q Q>x Q>y x>K y>K K>e", {"P": "J", "Q": "K"}),
        ("s>P P>Q P>b Q>x Q>y x>K y>K K>J b>J J>e", {"P": "J", "Q": "K"}),
        ("s>P P>Q P>b Q>x Q>y x>J y>J b>J J>e", {"P": "J", "Q": "J"}),
        # Branches of an inner fan-out that meet before the outer fan-in end there.
        ("s>P P>Q P>b Q>x Q>y x>m y>m m>J b>J J>e", {"P": "J", "Q": "m"}),
        # The fan-in of a later fan-out is not taken.
        ("s>P P>a P>b a>m b>m m>Q Q>x Q>y x>K y>K K>e", {"P": "m", "Q": "K"}),
        # A node that branches share before their fan-in is no join.
        ("s>P P>a P>b a>m b>m m>J J>e", {"P": "J"}),
        # Fan-outs in a row inside of a branch keep their own fan-ins.
        ("s>P P>Q P>b Q>x Q>y x>K y>K K>R R>u R>v u>K2 v>K2 K2>J b>J J>e", {"P": "J", "Q": "K", "R": "K2"}),
        # Branches that meet nowhere are not gathered, nor is a single one without a fan-in.
        ("s>P P>a P>b a>e b>e2 e2>z", {"P": ""}),
        ("s>P P>a a>e", {"P": ""}),
        # A loop back to before the fan-out changes nothing.
        ("s>p p>P P>a P>b a>J b>J J>e J>p a>p", {"P": "J"}),
    ],
)
def test_node_that_gathers_a_fan_out(edges: str, gathered: dict[str, str]) -> None:
    assert {name: fan.gather for name, fan in regions(edges).fans.items()} == gathered


def test_what_lies_between_a_fan_out_and_its_fan_in() -> None:
    found = regions("s>P P>a P>b a>c c>J b>J J>Q Q>x Q>y x>K y>K K>e")
    assert set(found.fans["P"].members) == {"a", "b", "c"}
    assert (found.around["c"], found.around["J"], found.around["x"]) == (("P",), (), ("Q",))
    found = regions("s>P P>Q P>b Q>x Q>y x>K y>K K>J b>J J>e")
    assert (found.around["x"], found.around["Q"], found.around["K"]) == (("Q", "P"), ("P",), ("P",))
    assert (found.scope("J"), found.scope("K"), found.scope("x")) == (("P",), ("Q",), ())
    apart = regions("s>P P>a P>b a>e b>e2 e2>z")
    assert (apart.around["a"], apart.gather_of("a")) == (("P",), "")
    assert set(regions("s>p p>P P>a P>b a>J b>J J>e J>p a>p").fans["P"].members) == {"a", "b"}
    # Either of two fan-outs may come to one fan-in; a way out of a branch lies inside until the rest shares it.
    assert set(regions("s>P s>Q P>a P>b Q>x Q>y a>J b>J x>J y>J J>e").scope("J")) == {"P", "Q"}
    assert regions("s>P P>a P>b a>J b>J J>r a>x x>e b>r r>e").gather_of("x") == "J"
    wide = " ".join(f"P>b{number} b{number}>J" for number in range(1000))
    assert len(regions(f"s>P {wide} J>e").fans["P"].members) == 1000


def test_jump_stays_in_its_branch() -> None:
    found = regions("s>o o>P P>a P>b a>c c>J b>d d>m c>m m>J J>e")
    assert [found.one_branch(*pair) for pair in ("ca", "ma", "Jo")] == [True] * 3
    assert [found.one_branch(*pair) for pair in ("cb", "co", "Ja")] == [False] * 3


# How they run

FAN = f"""{ENDS}
start -> P
P [shape=component]
P -> a
P -> b
a -> J
b -> J
J [shape=tripleoctagon]
J -> exit"""
#: The same without a fan-in: J is where the branches meet.
LOOSE = FAN.replace("J [shape=tripleoctagon]", "J [shape=box]")
#: Each branch ends at an exit of its own.
APART = f"{ENDS}done [shape=Msquare]\nstart -> P\nP [shape=component]\nP -> a -> exit\nP -> b -> done"


def sets(ctx: StepContext) -> NodeOutcome:
    return NodeOutcome(context_updates={"k": ctx.place.node.id, f"own.{ctx.place.node.id}": 1})


@pytest.mark.parametrize("text", [FAN, LOOSE])
def test_branches_do_not_see_each_other_and_nothing_is_merged_but_results_are_told(text: str) -> None:
    seen: dict[str, Any] = {}

    def look(ctx: StepContext) -> NodeOutcome:
        seen.update(ctx.place.seen)
        return NodeOutcome()

    play, result = played(text, {"a": sets, "b": sets, "exit": look})
    assert (result.status, sorted(play.order)) == ("completed", sorted(["start", "P", "a", "b", "J", "exit"]))
    assert [token for token, _ in play.state.steps["J#1"].consumed] == ["a->J", "b->J"]
    assert "own.b" not in play.state.steps["a#1"].context
    assert not {"k", "own.a", "own.b"} & seen.keys()
    assert [entry["id"] for entry in seen[RESULTS]] == ["a", "b"]
    assert seen[RESULTS][0]["context_updates"]["own.a"] == 1


@pytest.mark.parametrize("text", [FAN, LOOSE])
def test_failure_of_a_branch_is_the_joins_to_judge(text: str) -> None:
    play, result = played(text, {"a": RED})
    run = play.state.steps["a#1"]
    assert (result.status, list(run.edges), run.reason) == ("completed", ["a->J#branch"], "branch")
    assert play.state.context[RESULTS][0]["failure_reason"] == "red"


def test_branches_that_all_failed_fail_a_join_that_no_fan_in_draws_before_it_is_worked() -> None:
    play, result = played(LOOSE, {"a": RED, "b": failure("blue")})
    assert (result.status, play.count("J")) == ("failed", 0)
    assert "a: red; b: blue" in str(result.error)


@pytest.mark.parametrize(
    ("policy", "failed", "drawn", "loose"),
    [
        ("", "", "success", "completed"), ("", "a", "partial_success", "completed"), ("", "abc", "fail", "failed"),
        ("join_policy=wait_all", "ab", "partial_success", "completed"),
        ("join_policy=first_success", "ab", "success", "completed"),
        ("join_policy=first_success", "abc", "fail", "failed"),
        ("join_policy=quorum", "a", "success", "completed"), ("join_policy=quorum", "ab", "fail", "failed"),
        ("join_policy=quorum, quorum=1", "ab", "success", "completed"),
        ("join_policy=quorum, quorum=0.9", "a", "fail", "failed"),
        ("join_policy=k_of_n, k=2", "a", "success", "completed"), ("join_policy=k_of_n, k=3", "a", "fail", "failed"),
        ("join_policy=k_of_n", "", "fail", "failed"), ("join_policy=nonsense", "a", "partial_success", "completed"),
    ],
)  # fmt: skip
def test_join_policy_judges_the_branches_said_at_the_fan_in_or_the_fan_out_or_where_none_is_drawn(
    policy: str, failed: str, drawn: str, loose: str
) -> None:
    script: dict[str, Said] = {name: RED for name in failed}
    for shape in ("tripleoctagon", "component"):
        play, _ = played(FAN.replace(f"shape={shape}", f"shape={shape}, {policy}") + "\nP -> c -> J", script)
        assert play.state.steps["J#1"].outcome == drawn
    text = LOOSE.replace("shape=component", f"shape=component, {policy}") + "\nP -> c -> J"
    assert played(text, script)[1].status == loose


OVER = FAN.replace("a -> J", 'a -> J\na -> start2 [condition="outcome=over"]\nstart2 -> P')
INNER = "a -> Q\nQ [shape=component]\nQ -> x -> K\nQ -> y -> K\nK [shape=tripleoctagon]\nK -> J"
MEET = LOOSE.replace("J [shape=box]", "J [shape=diamond]").replace("J -> exit", "") + (
    '\nJ -> exit [condition="outcome=success"]\nJ -> mend [condition="outcome=partial_success"]\nmend -> exit'
)
#: What is shown: the graph, what its nodes come to, how often some nodes end, how visits led on.
SHAPED: dict[str, tuple[str, dict[str, Said], dict[str, int], dict[str, str]]] = {
    "a diamond where branches meet has what they came to": (MEET, {"a": RED}, {"mend": 1}, {}),
    "or that all of them succeeded": (MEET, {}, {"mend": 0}, {}),
    "a retry target inside the branch is taken": (
        FAN.replace("P -> a\n", "P -> p\np -> a\n").replace("a -> J", "a -> J\na [retry_target=p]"),
        {"a": [RED, "success"]}, {"p": 2}, {},
    ),
    "one outside is not": (FAN + "\na [retry_target=start]", {"a": RED}, {"start": 1}, {"a#1": "branch"}),
    "equal failures are the join's to judge": (FAN + "\na [retry_target=a]", {"a": RED}, {"a": 3}, {"a#3": "branch"}),
    "a limit reached is the branch's failure": (
        FAN + '\na -> a [condition="outcome=again"]\na [max_visits=3]', {"a": "again"}, {"a": 3}, {"a#3": "branch"},
    ),
    "nested ones are gathered from the inside": (FAN.replace("a -> J", INNER), {"x": RED}, {"K": 1, "J": 1}, {}),
    "a node that branches share runs for each": (
        FAN.replace("a -> J", "a -> s").replace("b -> J", "b -> s\ns -> J"), {}, {"s": 2, "J": 1, "exit": 1}, {},
    ),
    "a branch that leaves for the exit is not waited for": (
        FAN + '\na -> exit [condition="outcome=done"]', {"a": "done"}, {"J": 1, "exit": 2}, {},
    ),
    "one that goes back begins another round": (
        OVER.replace("start -> P", "start -> start2"), {"a": ["over", "success"]}, {"J": 2, "exit": 2}, {},
    ),
    "branches that meet nowhere are tracks": (APART, {}, {"exit": 1, "done": 1}, {}),
    "branches that meet at the exit end once": (
        f"{ENDS}start -> P\nP [shape=component]\nP -> a -> exit\nP -> b -> exit", {"a": RED}, {"exit": 1}, {},
    ),
    "conditions say which begin": (
        FAN.replace("P -> b", 'P -> b [condition="context.wide=true"]'), {}, {"a": 1, "b": 0}, {"P#1": "parallel"},
    ),
    "and these do": (
        FAN.replace("P -> b", 'P -> b [condition="context.wide=true"]'),
        {"start": NodeOutcome(context_updates={"wide": True})}, {"a": 1, "b": 1}, {},
    ),
    "a fan-in in a loop gathers each round": (
        FAN + '\nJ -> P [condition="outcome=more"]', {"J": ["more", "success"], "a": sets}, {"J": 2, "a": 2}, {},
    ),
    "a failing fan-in goes back": (
        FAN + "\nJ [retry_target=P]", {"a": [RED, "success"], "b": [RED, "success"]}, {"P": 2}, {},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "script", "counts", "reasons"), SHAPED.values(), ids=SHAPED)
def test_fan_out_goes(text: str, script: dict[str, Said], counts: dict[str, int], reasons: dict[str, str]) -> None:
    play, result = played(text, script)
    assert result.status == "completed"
    assert {node: play.order.count(node) for node in counts} == counts
    assert {path: play.reason(path) for path in reasons} == reasons


def test_failure_on_a_track_of_its_own_fails_the_run_once_the_others_have_ended() -> None:
    play, result = played(APART, {"a": RED})
    assert (str(result.error), "done" in play.order) == ("a: red", True)


def test_join_that_is_gone_back_to_sees_what_holds_now() -> None:
    seen: list[Any] = []

    def look(ctx: StepContext) -> NodeOutcome:
        seen.append(ctx.context.get("later"))
        return NodeOutcome()

    text = LOOSE.replace("J -> exit", "J -> c -> exit\nc [retry_target=J]")
    played(text, {"J": look, "c": [failure("red", context_updates={"later": 1}), "success"]})
    assert seen == [None, 1]


def test_unfinished_fan_out_goes_on_where_it_was_and_repeats_nothing() -> None:
    play = Play(FAN, {"a": "success"})

    def stop(ctx: StepContext) -> Any:
        if play.count("b") == 1:
            ctx.stop("enough")
        return NodeOutcome()

    play.script["b"] = stop
    assert play.go(model=False).detail == "stopped_as_asked"
    assert play.go(model=False).status == "completed"
    assert (play.count("a"), play.count("b")) == (1, 2)


# With the handlers that are built in


def fan(gather: str = "") -> str:
    branches = "".join(f"{name} [prompt={name}]\nfan -> {name} -> all\n" for name in "xyz")
    return f"fan [shape=component]\n{branches}all [shape=tripleoctagon, {gather}]\nstart -> fan\nall -> exit\n"


@pytest.mark.parametrize(
    ("gather", "words", "best"),
    [
        # By outcome, then score, then name; or by the model, if it names one of them.
        ("", {"x": '{"outcome": "fail", "context_updates": {"score": 9}}'}, "y"),
        ("", {"y": '{"outcome": "success", "context_updates": {"score": 5}}'}, "y"), ("", {}, "x"),
        ('prompt="Which is best for $goal?"', {"all": "All are fine, but\n**BEST: y**"}, "y"),
        ("prompt=Best", {"all": "BEST: w"}, "x"),
    ],
)  # fmt: skip
def test_best_branch(gather: str, words: dict[str, str], best: str) -> None:
    act = Act(fan(gather), lambda request: words.get(str(request.label), f"from {request.label}"))
    assert act.go().status == "completed"
    assert act.context("parallel.fan_in.best_id") == best
    for asked in (request for request in act.model.requests if request.label == "all"):
        assert all(part in said(asked) for part in ("## x (success)\nfrom x", "## z (success)"))
    assert Act(fan(gather)).go(simulate=True, model=False).status == "completed"


def test_branches_of_several_nodes_are_known_by_their_first_and_long_replies_do_not_fill_the_context() -> None:
    act = Act(
        "fan [shape=component]\na [prompt=A]\na2 [prompt=A2]\nb [prompt=B]\nall [shape=tripleoctagon]\n"
        "start -> fan\nfan -> a -> a2 -> all\nfan -> b -> all\nall -> exit",
        lambda request: json.dumps("x" * 100_000),
    )
    assert len(act.go().outputs["b"]["response"]) > 100_000
    rows = act.context("parallel.results")
    assert [(row["id"], row["node"]) for row in rows] == [("a", "a2"), ("b", "b")]
    assert len(str(rows)) < 20_000


def test_a_resume_in_the_midst_of_a_fan_out_pays_nothing_twice() -> None:
    broken = {"y": True}

    def script(request: Request) -> Any:
        if broken.get(str(request.label)):
            raise KeyboardInterrupt
        return f"from {request.label}"

    act = Act(fan(), script)
    assert act.go(concurrency=1).status == "in_progress"
    broken.clear()
    assert act.go().status == "completed"
    assert sorted(str(request.label) for request in act.model.requests) == ["x", "y", "y", "z"]
    assert act.visit("all").outcome == "success"
