"""Handlers by type: what is built in, users' own, those of the field's interface; diamonds; names in texts."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pipeline import Message, Request, ScriptedModel, run_dot
from pipeline.clock import SystemClock
from pipeline.dot.parser import parse
from pipeline.engine.changes import of_graph
from pipeline.engine.step import Outcome, StepContext
from pipeline.errors import ConfigError, InvalidValue
from pipeline.formats.attractor.compilation import compile_graph
from pipeline.formats.attractor.handlers.prompt import expand
from pipeline.formats.attractor.handlers.registry import Registry
from pipeline.formats.attractor.handlers.standard import standard_registry
from pipeline.formats.attractor.outcome import NodeOutcome, outcome_of, value_text
from pipeline.store.memory import MemoryStore
from tests.unit.formats.acting import Act


def test_what_is_built_in_is_listed_with_what_it_does_outside() -> None:
    rows = {type: standard_registry().resolve(type) for type in standard_registry().types()}
    assert (rows["tool"].shape, rows["tool"].effect) == ("parallelogram", "external")
    assert (rows["wait.human"].shape, rows["wait.human"].effect) == ("hexagon", "human")
    assert (rows["codergen"].shape, rows["codergen"].effect) == ("box", "read")
    assert all(row.purpose for row in rows.values())


def with_type(handler: Any, type: str = "mine", **more: Any) -> Registry:
    made = standard_registry()
    made.register(type, handler, **more)
    return made


def own(handler: Any, rest: str = "x -> exit", **more: Any) -> Act:
    more_nodes = "b [prompt=B]\n" if "b ->" in rest else ""
    act = Act(f"x [type=mine, size=3]\n{more_nodes}start -> x\n{rest}", handlers=with_type(handler, **more))
    act.go()
    return act


def test_a_function_of_ones_own_works_a_node() -> None:
    def size(ctx: StepContext) -> dict[str, Any]:
        """How large it is."""
        return {"size": ctx.place.node.attributes["size"]}

    act = own(size)
    assert act.visit("x").outputs == {"size": 3}
    assert with_type(size).resolve("mine").purpose == "How large it is."


def test_a_function_may_say_an_outcome_and_set_the_context() -> None:
    act = own(lambda ctx: {"outcome": "done", "context_updates": {"n": 1}, "more": 2},
              'x -> b [condition="outcome=done"]\nx -> exit\nb -> exit')  # fmt: skip
    assert act.order == ["start", "x", "b", "exit"]
    assert (act.context("n"), act.visit("x").outputs) == (1, {"more": 2})


@pytest.mark.parametrize("word", ["fail", "FAILED", "failure"])
def test_a_function_may_fail(word: str) -> None:
    act = own(lambda ctx: {"status": word, "failure_reason": "too small"})
    assert (act.visit("x").error or {})["message"] == "too small"


def test_an_error_of_a_function_fails_the_node_not_the_program() -> None:
    def broken(ctx: StepContext) -> Any:
        raise ZeroDivisionError("by nothing")

    act = own(broken, 'x -> b [condition="outcome=fail"]\nx -> exit [condition="outcome=success"]\nb -> exit')
    assert act.order == ["start", "x", "b", "exit"]


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (None, NodeOutcome()),
        ("text", NodeOutcome(context_updates={"last_response": "text"}, outputs={"response": "text"})),
        ({"a": 1}, NodeOutcome(outputs={"a": 1})),
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


def test_what_means_no_outcome_is_refused() -> None:
    with pytest.raises(InvalidValue) as caught:
        outcome_of([1])
    assert caught.value.code == "no_outcome"


class Status(Enum):
    SUCCESS = "SUCCESS"
    FAIL = "FAIL"


class Theirs:
    """A handler of the field's own interface."""

    def execute(self, node: Any, context: Any, graph: Any, logs_root: str) -> Any:
        context.append_log(f"{node.id} of {graph.name}")
        context.set("seen", context.get_string("graph.goal"))
        context.apply_updates({"both": "context"})
        copy = context.clone()
        copy.set("seen", "never")
        assert context.get("nothing", 7) == 7
        assert context.snapshot()["seen"] == ""
        return SimpleNamespace(
            status=Status.SUCCESS, context_updates={"both": "outcome"}, preferred_label="", notes=None
        )


def test_an_object_with_execute_works_a_node() -> None:
    act = own(Theirs())
    assert act.state.status == "completed"
    assert (act.context("seen"), act.context("both")) == ("", "outcome")
    assert "x: x of g" in act.notes


def test_logs_root_is_the_folder_that_is_lent(tmp_path: Any) -> None:
    seen: list[str] = []

    class Where:
        def execute(self, node: Any, context: Any, graph: Any, logs_root: str) -> Any:
            seen.append(logs_root)

    for services in ({"logs_root": tmp_path}, {}):
        act = Act("x [type=mine]\nstart -> x -> exit", handlers=with_type(Where()))
        act.go(services=services)
    assert seen[0] == str(tmp_path)
    assert seen[1] not in ("", str(tmp_path))


def test_registering_a_known_type_replaces_it_and_keeps_its_shape_and_effect() -> None:
    made = with_type(lambda ctx: {"ran": ctx.place.node.attributes["tool_command"]}, "tool")
    row = made.resolve("tool")
    assert (row.shape, row.effect) == ("parallelogram", "external")
    act = Act('t [shape=parallelogram, tool_command="rm -rf /"]\nstart -> t -> exit', handlers=made)
    assert act.go().outputs["t"] == {"ran": "rm -rf /"}
    assert standard_registry().resolve("tool").purpose != row.purpose


def test_a_type_nobody_knows_is_worked_as_codergen() -> None:
    made = standard_registry()
    assert made.resolve("unheard.of") is made.resolve("codergen")
    with pytest.raises(ConfigError) as caught:
        Registry().resolve("x")
    assert caught.value.code == "unknown_type"


@pytest.mark.parametrize(("type", "handler", "more"), [("", len, {}), ("x", 3, {}), ("x", len, {"effect": "magic"})])
def test_what_is_no_handler_is_refused(type: str, handler: Any, more: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        standard_registry().register(type, handler, **more)


def test_the_effect_of_a_step_is_its_handlers_or_what_the_node_says() -> None:
    graph = parse("digraph { a [shape=parallelogram]; b [shape=parallelogram, effect=write, repeatable=true] }")
    made = standard_registry()
    steps = [made.step(graph, node) for node in graph.nodes.values()]
    assert [(step.effect, step.repeatable) for step in steps] == [("external", False), ("write", True)]


# --- diamonds


def test_a_diamond_passes_on_what_led_to_it() -> None:
    act = Act(
        't [type=mine]\nd [shape=diamond]\nb [prompt=B]\nstart -> t -> d\nd -> b [condition="outcome!=success"]\n'
        "d -> exit\nb -> exit",
        handlers=with_type(lambda ctx: {"outcome": "fail", "failure_reason": "why", "failure_class": "mine"}),
    )
    assert act.go().status == "completed"
    assert act.order == ["start", "t", "d", "b", "exit"]
    assert act.visit("d").outcome == "fail"
    assert (act.visit("d").error or {})["message"] == "why"


def test_a_diamond_after_a_success_succeeds() -> None:
    act = Act(
        'd [shape=diamond]\nb [prompt=B]\nstart -> d\nd -> b [condition="outcome!=success"]\nd -> exit\nb -> exit'
    )
    act.go()
    assert act.order == ["start", "d", "exit"]


# --- names in texts


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("$a ${a} $a.", "1 1 1."),
        ("$a.b $a.c ${a.c}", "2 1.c ${a.c}"),
        ("$x $$ $ ${ $1 $a_b", "$x $$ $ ${ $1 $a_b"),
        ("cost: $5, $(a) $a$a", "cost: $5, $(a) 11"),
        ("${a-b}", "3"),
        ("plain", "plain"),
    ],
)
def test_known_names_are_filled_in_and_unknown_ones_left(text: str, made: str) -> None:
    known = {"a": "1", "a.b": "2", "a-b": "3"}
    assert expand(text, known.get) == made


def test_what_is_filled_in_is_not_looked_at_again() -> None:
    assert expand("$a", {"a": "$b", "b": "no"}.get) == "$b"


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (None, ""), (3, "3"), (1.5, "1.5"), ({"a": [1]}, '{"a": [1]}'), ("x", "x")]
)
def test_values_are_written_as_people_write_them(value: Any, text: str) -> None:
    assert value_text(value, compact=False) == text


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
