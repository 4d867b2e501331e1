"""Handlers by type and what they come to; graphs compiled for the engine, those of the field among them."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pipeline import Message, Request, ScriptedModel, run_dot
from pipeline.clock import SystemClock
from pipeline.dot.conditions import compile_condition
from pipeline.dot.model import DotGraph
from pipeline.dot.parser import parse
from pipeline.engine.changes import of_graph
from pipeline.engine.setup import Definition
from pipeline.engine.step import Outcome, StepContext
from pipeline.errors import ConfigError, GraphError, InvalidValue
from pipeline.formats.attractor.compilation import compile_graph
from pipeline.formats.attractor.handlers.prompt import expand
from pipeline.formats.attractor.handlers.registry import Registry
from pipeline.formats.attractor.handlers.standard import standard_registry
from pipeline.formats.attractor.outcome import NodeOutcome, failure, from_json, normalise, outcome_of, to_engine
from pipeline.formats.attractor.router import graph_context
from pipeline.store.memory import MemoryStore
from tests.unit.formats.acting import ENDS, Act, Play, played


def with_type(handler: Any, type: str = "mine", **more: Any) -> Registry:
    made = standard_registry()
    made.register(type, handler, **more)
    return made


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (None, NodeOutcome()),
        ("text", NodeOutcome(context_updates={"last_response": "text"}, outputs={"response": "text"})),
        ({"a": 1}, NodeOutcome(outputs={"a": 1})),
        ({"status": "FAILED", "failure_reason": "no"}, failure("no")),
        (
            {"outcome": "done", "context_updates": {"n": 1}, "more": 2},
            NodeOutcome("done", context_updates={"n": 1}, outputs={"more": 2}),
        ),
        ({"status": 200, "a": 1}, NodeOutcome(outputs={"status": 200, "a": 1})),
        (NodeOutcome("x"), NodeOutcome("x")),
        (Outcome({"a": 1}, "odd", {"k": 2}), NodeOutcome("odd", context_updates={"k": 2}, outputs={"a": 1})),
        (
            Outcome({}, "success", error={"type": "E", "message": "no", "class": "auth"}),
            NodeOutcome("fail", failure_reason="no", failure_class="auth"),
        ),
        (SimpleNamespace(status="partially_succeeded", notes="n"), NodeOutcome("partial_success", notes="n")),
    ],
)
def test_what_a_handler_returns_means_an_outcome(value: Any, outcome: NodeOutcome) -> None:
    assert outcome_of(value) == outcome
    with pytest.raises(InvalidValue):
        outcome_of([1])


class Status(Enum):
    SUCCESS = "SUCCESS"
    FAIL = "FAIL"


class Theirs:
    """A handler of the field's own interface."""

    def execute(self, node: Any, context: Any, graph: Any, logs_root: str) -> Any:
        context.append_log(f"{node.id} of {graph.name}")
        context.set("seen", context.get_string("graph.goal"))
        context.apply_updates({"both": "context"})
        (Path(logs_root) / "x.txt").write_text(node.id)
        copy = context.clone()
        copy.set("seen", "never")
        assert context.get("nothing", 7) == 7
        assert context.snapshot()["seen"] == ""
        return SimpleNamespace(
            status=Status.SUCCESS, context_updates={"both": "outcome"}, preferred_label="", notes=None
        )


def test_an_object_with_execute_works_a_node(tmp_path: Path) -> None:
    act = Act("x [type=mine]\nstart -> x -> exit", handlers=with_type(Theirs()))
    assert act.go(services={"logs_root": tmp_path}).status == "completed"
    assert (tmp_path / "x.txt").read_text() == "x"
    assert (act.context("seen"), act.context("both")) == ("", "outcome")
    assert "x: x of g" in act.notes


def test_registering_a_known_type_replaces_it_and_keeps_its_shape_and_effect() -> None:
    def run(ctx: StepContext) -> dict[str, Any]:
        """What it is for."""
        return {"ran": ctx.place.node.attributes["tool_command"]}

    made = with_type(run, "tool")
    row = made.resolve("tool")
    assert (row.shape, row.effect, row.purpose) == ("parallelogram", "external", "What it is for.")
    act = Act('t [shape=parallelogram, tool_command="rm -rf /"]\nstart -> t -> exit', handlers=made)
    assert act.go().outputs["t"] == {"ran": "rm -rf /"}


@pytest.mark.parametrize(("type", "handler", "more"), [("", len, {}), ("x", 3, {}), ("x", len, {"effect": "magic"})])
def test_what_is_no_handler_is_refused(type: str, handler: Any, more: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        standard_registry().register(type, handler, **more)


def test_the_effect_of_a_step_is_its_handlers_or_what_the_node_says() -> None:
    graph = parse("digraph { a [shape=parallelogram]; b [shape=parallelogram, effect=write, repeatable=true] }")
    made = standard_registry()
    assert made.resolve("unheard.of") is made.resolve("codergen")
    assert [made.resolve(type).effect for type in ("wait.human", "codergen", "conditional")] == [
        "human",
        "read",
        "pure",
    ]
    steps = [made.step(graph, node) for node in graph.nodes.values()]
    assert [(step.effect, step.repeatable) for step in steps] == [("external", False), ("write", True)]


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("$a ${a} $a.", "1 1 1."), ("$a.b $a.c ${a.c}", "2 1.c ${a.c}"), ("$x $$ $ ${ $1 $a_b", "$x $$ $ ${ $1 $a_b"),
        ("cost: $5, $(a) $a$a", "cost: $5, $(a) 11"), ("${a-b}", "3"), ("plain $c", "plain $a"),
    ],
)  # fmt: skip
def test_known_names_are_filled_in_and_unknown_ones_left(text: str, made: str) -> None:
    known = {"a": "1", "a.b": "2", "a-b": "3", "c": "$a"}
    assert expand(text, known.get) == made


def test_what_a_handler_of_ones_own_may_read_counts_as_its_work() -> None:
    text = "digraph { start [shape=Mdiamond]; a [type=mine, size=1, color=red]; b [x_own=1]; exit [shape=Msquare];"
    text += "start -> a -> b -> exit }"
    handlers = with_type(lambda ctx: None)

    def changed(edited: str) -> set[str]:
        before, now = (compile_graph(parse(each), handlers) for each in (text, edited))
        return set(of_graph(before.graph.to_json(), now.graph, now.comparable).changed)

    assert changed(text.replace("=1", "=2")) == {"a"}
    assert changed(text.replace("red", "blue")) == set()


def test_handler_whose_code_raises_hears_its_replies_again_in_its_own_retries_and_on_resume(tmp_path: Path) -> None:
    asked, broken = [], [True, True, True]

    def model(request: Request) -> str:
        asked.append(request.messages[-1].text)
        return "paid"

    def handle(ctx: StepContext) -> dict[str, Any]:
        texts = [ctx.ask(Request("claude-sonnet-5-5", [Message("user", f"{n}")])).text for n in range(3)]
        if broken:
            broken.pop()
            raise OSError("no room")
        return {"texts": len(texts)}

    path = tmp_path / "g.dot"
    path.write_text(
        "digraph { start [shape=Mdiamond] exit [shape=Msquare] x [type=mine, max_retries=1] start->x->exit }"
    )
    store, how = MemoryStore(SystemClock()), cast(Any, {"registry": with_type(handle)})
    scripted = ScriptedModel(model, model_id="claude-sonnet-5-5", paid=True)
    first = run_dot(path, store=store, model=scripted, **how)
    assert (first.status, asked, len(broken)) == ("failed", ["0", "1", "2"], 1)
    again = run_dot(path, resume=first.run_id, store=store, model=scripted, **how)
    assert (again.status, asked) == ("failed", ["0", "1", "2"])
    assert run_dot(path, resume=first.run_id, store=store, model=scripted, **how).status == "completed"
    assert asked == ["0", "1", "2"]


def test_status_document_is_read_whole_and_outcomes_have_one_spelling() -> None:
    words = ["success", "SUCCEEDED", "Failed", "FAILURE", "PARTIAL", "partially_succeeded", "needs_dod", "Port"]
    assert [normalise(word) for word in (*words, " retry ")] == [
        "success", "success", "fail", "fail", "partial_success", "partial_success", "needs_dod", "Port", "retry",
    ]  # fmt: skip
    assert from_json({
        "outcome": "failed", "preferred_next_label": "Fix", "suggested_next_ids": ["a", "b"],
        "context_updates": {"k": 1}, "notes": "n", "failure_reason": "r", "failure_class": "auth", "other": [],
    }) == NodeOutcome("fail", "Fix", ("a", "b"), {"k": 1}, "n", "r", "auth")  # fmt: skip


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ([], "the document"), ({}, "'outcome'"), ({"outcome": ""}, "'outcome'"), ({"outcome": 3}, "'outcome'"),
        ({"outcome": "success", "preferred_label": ["x"]}, "'preferred_label'"),
        ({"outcome": "success", "suggested_next_ids": "a"}, "'suggested_next_ids'"),
        ({"outcome": "success", "suggested_next_ids": [1]}, "'suggested_next_ids'"),
        ({"outcome": "success", "context_updates": "x"}, "'context_updates'"),
        ({"outcome": "success", "notes": {}}, "'notes'"),
    ],
)  # fmt: skip
def test_status_document_of_wrong_types_is_a_failure_that_names_the_key(document: Any, named: str) -> None:
    found = from_json(document, "outcome.json")
    assert (found.status, found.failure_class) == ("fail", "validation")
    assert named in found.failure_reason
    assert found.failure_reason.startswith("outcome.json: ")


def test_engine_is_told_of_a_failure_by_its_error_and_of_the_way_on_by_hints() -> None:
    made = to_engine(NodeOutcome("failure", "Fix", ("a",), {"k": 1}, "n", "boom", "auth", {"response": "r"}))
    assert made.label == "fail"
    assert made.error == {"type": "NodeFailed", "message": "boom", "class": "auth"}
    assert (made.hints["preferred_label"], made.hints["suggested_next_ids"]) == ("Fix", ("a",))
    assert made.context == {"k": 1}
    assert made.outputs == {"response": "r", "preferred_label": "Fix", "suggested_next_ids": ["a"], "notes": "n"}
    assert (to_engine(NodeOutcome("fail", notes="it is red")).error or {})["message"] == "it is red"
    own = to_engine(NodeOutcome("needs_dod"))
    assert (own.label, own.error, own.outputs) == ("needs_dod", None, {})


DOTS = Path(__file__).parents[3] / "../shared/dots"


def compiled(text: str) -> Definition:
    made = Registry()
    for kind in ("start", "exit", "codergen", "parallel", "tool"):
        made.register(kind, lambda ctx: NodeOutcome())
    return compile_graph(parse(f"digraph g {{\n{text}\n}}"), made)


def test_nodes_carry_their_effective_attributes_and_their_type() -> None:
    made = compiled(f"""{ENDS}
model_stylesheet="* {{ llm_model: small; }} .hard {{ llm_model: large; }}"
start -> w -> v -> exit
v -> exit [condition="outcome=x", weight=2]
w [class=hard, prompt="Do it", timeout=5m, fan=x, implicit=true]""")
    w, v = made.graph.nodes["w"], made.graph.nodes["v"]
    assert {key: w.attributes[key] for key in ("type", "llm_model", "prompt", "timeout")} == {
        "type": "codergen", "llm_model": "large", "prompt": "Do it", "timeout": "5m",
    }  # fmt: skip
    assert (v.attributes["llm_model"], v.attributes["prompt"]) == ("small", "v")
    assert (made.name, made.graph.start) == ("g", "start")
    assert not {"fan", "implicit"} & w.attributes.keys(), "a file's own do not stand in for the engine's"
    edge = made.graph.edge("v->exit#2")
    assert edge is not None
    assert edge.attributes == {"condition": "outcome=x", "weight": 2}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a -> b", "invalid_graph"), (f"{ENDS}start -> exit\nlost -> exit", "invalid_graph"),
        (f'{ENDS}start -> exit [condition="outcome="]', "condition_syntax"),
    ],
)  # fmt: skip
def test_graph_that_cannot_run_is_refused(text: str, code: str) -> None:
    with pytest.raises(GraphError) as caught:
        compiled(text)
    assert caught.value.code == code


def test_type_that_nobody_registered_is_worked_as_its_shape_says() -> None:
    made = compiled(f'{ENDS}start -> a -> b -> exit\na [type="stack.observe"]\nb [type=mine, shape=parallelogram]')
    assert [made.graph.nodes[name].attributes["type"] for name in ("a", "b")] == ["codergen", "tool"]


def test_what_is_known_of_a_graph_is_in_the_context_from_the_start() -> None:
    play, _ = played(f'{ENDS}goal="ship it"\nversion=3\ntimeout=5m\nstart -> exit')
    known = graph_context(play.dot)
    assert known == {"graph.goal": "ship it", "graph.version": 3, "graph.timeout": "5m", "_pipeline_name": "g"}
    assert known.items() <= play.state.context.items()


def test_every_visit_leaves_the_keys_of_both_dialects() -> None:
    play, _ = played(f"{ENDS}start -> w -> exit", {"w": NodeOutcome(context_updates={"_previous_node": "mine"})})
    assert {
        "outcome": "success", "last_stage": "w", "current_node": "exit", "_current_node": "exit",
        "_previous_node": "w",
    }.items() <= play.state.context.items()  # fmt: skip
    own = {"last_stage": "w", "current_node": "w", "_current_node": "w", "_previous_node": "mine"}
    assert play.state.steps["w#1"].context == own, "a key that the handler sets itself stands"
    assert played(f"{ENDS}start -> w -> exit", {"w": "skipped"})[0].state.steps["w#1"].context == {}


# The field's own files


def agreeable(dot: DotGraph, node: str) -> str:
    """The outcome that a node's edges want to hear: success, or the first word of their own."""
    words = [
        normalise(literal)
        for edge in dot.outgoing(node)
        for clause, negated in compile_condition(edge.condition).clauses()
        if clause.about_outcome and not negated and clause.operator in ("=", "IN")
        for literal in clause.literals
    ]
    return "success" if not words or "success" in words else words[0]


@pytest.mark.skipif(not DOTS.is_dir(), reason="the field's files are not here")
@pytest.mark.parametrize("name", sorted(path.name for path in DOTS.glob("*.dot")))
def test_real_file_compiles_and_runs_to_its_end(name: str) -> None:
    play = Play((DOTS / name).read_text(encoding="utf-8"))
    play.script = {node: agreeable(play.dot, node) for node in play.dot.nodes}
    result = play.go(model=False)
    assert (result.status, str(result.error)) == ("completed", "None")
    assert play.order[-1] in play.dot.exits
