"""From DOT to the engine: nodes, edges, virtual edges, entry points; and the real files of the field run to an end."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.dot.conditions import compile_condition
from pipeline.dot.model import DotGraph
from pipeline.dot.parser import parse
from pipeline.engine.setup import Definition
from pipeline.errors import GraphError
from pipeline.formats.attractor.compilation import compile_graph
from pipeline.formats.attractor.handlers.registry import Registry
from pipeline.formats.attractor.outcome import NodeOutcome, normalise
from pipeline.formats.attractor.router import graph_context
from tests.unit.formats.playing import ENDS, Play, played

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
w [class=hard, prompt="Do it", timeout=5m]""")
    w, v = made.graph.nodes["w"], made.graph.nodes["v"]
    assert {key: w.attributes[key] for key in ("type", "llm_model", "prompt", "timeout")} == {
        "type": "codergen", "llm_model": "large", "prompt": "Do it", "timeout": "5m",
    }  # fmt: skip
    assert (v.attributes["llm_model"], v.attributes["prompt"]) == ("small", "v")
    assert (made.name, made.graph.start) == ("g", "start")


def test_drawn_edges_keep_their_ids_and_attributes() -> None:
    made = compiled(f'{ENDS}start -> w\nw -> exit [condition="outcome=x", weight=2]\nw -> exit')
    edge = made.graph.edge("w->exit")
    assert edge is not None
    assert edge.attributes == {"condition": "outcome=x", "weight": 2}
    assert made.graph.edge("w->exit#2") is not None


def test_jumps_are_declared_as_virtual_edges() -> None:
    made = compiled(f"""{ENDS}fallback_retry_target=start
start -> w -> exit
w [goal_gate=true, retry_target=w]""")
    virtual = {edge.id: edge.attributes["virtual"] for edge in made.graph.edges if "virtual" in edge.attributes}
    assert virtual == {
        "start->start#retry": "retry_target",
        "w->w#retry": "retry_target",
        "w->start#retry": "retry_target",
        "exit->w#gate:w": "goal_gate",
        "exit->start#gate:w": "goal_gate",
    }


def test_graph_of_a_run_is_what_was_compiled_again() -> None:
    text = f"{ENDS}start -> P\nP [shape=component]\nP -> a -> J\nP -> b -> J\nJ -> exit"
    made = compiled(text)
    assert compiled(text).graph == made.graph
    assert type(made.graph).from_json(made.graph.to_json()) == made.graph


def test_files_own_attributes_do_not_stand_in_for_the_engines() -> None:
    made = compiled(f"{ENDS}start -> w -> exit\nw [fan=x, scope=y, max_parallel=3, implicit=true]")
    assert not {"fan", "scope", "max_parallel", "implicit"} & made.graph.nodes["w"].attributes.keys()


def test_graph_without_a_start_is_refused() -> None:
    with pytest.raises(GraphError, match="no start node"):
        compiled("a -> b")


def test_node_that_nothing_leads_to_is_refused() -> None:
    with pytest.raises(GraphError, match="'lost' cannot be reached"):
        compiled(f"{ENDS}start -> exit\nlost -> exit")


def test_condition_that_says_nothing_is_refused() -> None:
    with pytest.raises(GraphError) as caught:
        compiled(f'{ENDS}start -> exit [condition="outcome="]')
    assert caught.value.code == "condition_syntax"


def test_type_that_nobody_registered_is_worked_as_its_shape_says() -> None:
    calls: list[str] = []
    handlers = Registry()
    for kind in ("start", "exit", "codergen", "tool"):
        handlers.register(kind, lambda ctx, kind=kind: calls.append(kind))
    text = (
        f'digraph g {{ {ENDS}start -> a -> b -> exit\na [type="stack.observe"]\nb [type=mine, shape=parallelogram] }}'
    )
    made = compile_graph(parse(text), handlers)
    assert [made.graph.nodes[name].attributes["type"] for name in ("a", "b")] == ["codergen", "tool"]


def test_what_is_known_of_a_graph_is_in_the_context_from_the_start() -> None:
    play, _ = played(f'{ENDS}goal="ship it"\nversion=3\ntimeout=5m\nstart -> exit')
    known = graph_context(play.dot)
    assert known == {"graph.goal": "ship it", "graph.version": 3, "graph.timeout": "5m", "_pipeline_name": "g"}
    assert known.items() <= play.state.context.items()


def test_every_visit_leaves_the_keys_of_both_dialects() -> None:
    play, _ = played(f"{ENDS}start -> w -> exit")
    assert {
        "outcome": "success", "last_stage": "w", "current_node": "exit", "_current_node": "exit",
        "_previous_node": "w",
    }.items() <= play.state.context.items()  # fmt: skip
    assert set(play.state.steps["w#1"].context) == {"last_stage", "current_node", "_current_node", "_previous_node"}


def test_keys_that_a_handler_sets_itself_stand() -> None:
    play, _ = played(f"{ENDS}start -> w -> exit", {"w": NodeOutcome(context_updates={"last_stage": "mine"})})
    assert play.state.steps["w#1"].context["last_stage"] == "mine"


def test_skipped_node_is_passed_without_a_trace_in_the_context() -> None:
    play, result = played(f"{ENDS}start -> w -> exit", {"w": "skipped"})
    assert (result.status, play.state.steps["w#1"].context) == ("completed", {})


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
    result = play.go()
    assert (result.status, str(result.error)) == ("completed", "None")
    assert play.order[-1] in play.dot.exits


@pytest.mark.skipif(not DOTS.is_dir(), reason="the field's files are not here")
def test_branches_of_a_real_file_meet_where_it_draws_no_fan_in() -> None:
    play = Play((DOTS / "kilroy_reference_template.dot").read_text(encoding="utf-8"))
    scopes = {name: node.attributes["scope"] for name, node in play.definition.graph.nodes.items()
              if "scope" in node.attributes}  # fmt: skip
    assert scopes == {
        "consolidate_dod": "dod_fanout", "debate_consolidate": "plan_fanout", "review_consensus": "review_fanout",
    }  # fmt: skip


@pytest.mark.skipif(not DOTS.is_dir(), reason="the field's files are not here")
def test_failing_tool_of_a_real_file_reaches_its_diamond() -> None:
    play = Play((DOTS / "kilroy_failure_routing.dot").read_text(encoding="utf-8"), {"check": "fail"})
    assert (play.go().status, play.order[-2:]) == ("completed", ["route", "fail_exit"])
