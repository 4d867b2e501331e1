"""The rules: each finds its fault, names the place and a fix, and leaves a sound graph alone."""

from __future__ import annotations

import pytest

from pipeline.dot.diagnostics import ERROR, INFO, WARNING, Diagnostic
from pipeline.dot.model import DotGraph
from pipeline.dot.parser import parse
from pipeline.dot.rules import check, check_or_raise, tool_commands
from pipeline.errors import GraphError

SOUND = """
    graph [goal="x", default_max_retries=2, retry_target=plan, default_fidelity="summary:high"]
    start [shape=Mdiamond]; done [shape=Msquare]
    plan [prompt="Plan $goal", class=hard, llm_model="m"]
    test [shape=parallelogram, tool_command="make", max_retries="1"]
    critic [prompt="Judge", goal_gate=true, max_visits=3]
    ask [shape=hexagon, label="Well?", human.default_choice="[Y] Yes"]
    start -> plan -> test -> critic
    critic -> ask [condition="outcome=success"]
    critic -> plan [condition="outcome=fail"]
    ask -> done [label="[Y] Yes"]; ask -> plan [label="[N] No", weight=-1]
"""
BASE = "start [shape=Mdiamond]; done [shape=Msquare]; a [prompt=x]; b [prompt=x]; start -> a; "

WAYS = BASE + "a -> done; b -> done; "
HUMAN = WAYS + "h [shape=hexagon]; a -> h; "


def body(text: str) -> DotGraph:
    return parse("digraph G {\n" + text + "\n}")


def found(text: str, rule: str) -> list[Diagnostic]:
    return [finding for finding in check(body(text)) if finding.rule == rule]


def test_rules_leave_a_sound_graph_alone() -> None:
    assert check(body(SOUND)) == []
    assert check_or_raise(body(SOUND)) == []


@pytest.mark.parametrize(
    ("rule", "severity", "place", "text"),
    [
        ("start_node", ERROR, "", "done [shape=Msquare]; a; a -> done"),
        ("start_node", ERROR, "s2", "s [shape=Mdiamond]; s2 [type=start]; done [shape=Msquare]; s -> done; s2 -> done"),
        ("terminal_node", ERROR, "", "start [shape=Mdiamond]; a; start -> a"),
        ("edge_target_exists", ERROR, "a->dne", BASE + "a -> dne; a -> b; b -> done"),
        ("edge_target_exists", ERROR, "ghost->b", BASE + "ghost -> b; a -> b; b -> done"),
        ("reachability", ERROR, "b", BASE + "a -> done; b -> done"),
        ("start_no_incoming", ERROR, "b->start", BASE + "a -> b; b -> start; b -> done"),
        ("exit_no_outgoing", ERROR, "done->b", BASE + "a -> done; done -> b; b -> done"),
        ("exit_reachable", ERROR, "a", BASE + "a -> b; b -> a; c [prompt=x]; c -> done; start -> c"),
        ("exit_reachable", ERROR, "start", BASE + "a -> b"),
        ("dead_end", WARNING, "b", BASE + "a -> done; a -> b"),
        ("condition_syntax", ERROR, "a->done", BASE + 'a -> done [condition="outcome="]; a -> b; b -> done'),
        ("stylesheet_syntax", ERROR, "", BASE + 'model_stylesheet="* {"; a -> b -> done'),
        ("stylesheet_property", WARNING, "", BASE + 'model_stylesheet="* { colour: red; }"; a -> b -> done'),
        ("stylesheet_selector", INFO, "", BASE + 'model_stylesheet=".no { model: x; }"; a -> b -> done'),
        ("type_known", WARNING, "c", BASE + "c [type=toll]; a -> b -> c -> done"),
        ("shape_known", WARNING, "c", BASE + "c [shape=star, prompt=x]; a -> b -> c -> done"),
        ("fidelity_valid", WARNING, "c", BASE + "c [fidelity=fulll, prompt=x]; a -> b -> c -> done"),
        ("fidelity_valid", WARNING, "", BASE + 'default_fidelity="summary"; a -> b -> done'),
        ("fidelity_valid", WARNING, "a->b", BASE + "a -> b [fidelity=some]; b -> done"),
        ("retry_target_exists", WARNING, "c", BASE + "c [retry_target=nope, prompt=x]; a -> b -> c -> done"),
        ("retry_target_exists", WARNING, "", BASE + "fallback_retry_target=nope; a -> b -> done"),
        ("goal_gate_has_retry", WARNING, "c", BASE + "c [goal_gate=true, prompt=x]; a -> b -> c -> done"),
        ("prompt_on_llm_nodes", WARNING, "c", BASE + "c; a -> b -> c -> done"),
        ("tool_has_command", WARNING, "c", BASE + "c [shape=parallelogram]; a -> b -> c -> done"),
        ("gate_bypassable", WARNING, "b", BASE + "b [goal_gate=true, retry_target=a]; a -> b; b -> done; a -> done"),
        ("gate_outcome", WARNING, "b->done", BASE + 'b [goal_gate="true", retry_target=a]; a -> b; '
         'b -> done [condition="outcome=pass"]; b -> a'),
        ("outcome_word", WARNING, "a->b", BASE + 'a -> b [condition="outcome=sucess"]; a -> done; b -> done'),
        ("outcome_word", WARNING, "a->b", BASE + 'a -> b [condition="outcome=Success"]; a -> done; b -> done'),
        ("conditional_default", WARNING, "a", BASE + 'a -> b [condition="outcome=x"]; b -> done; '
         'a -> done [condition="outcome=y"]'),
        ("unbounded_cycle", WARNING, "a", BASE + "a -> b; b -> a; b -> done"),
        ("unbounded_cycle", INFO, "a", BASE + 'a -> b; b -> a [condition="outcome=fail"]; b -> done'),
        ("unbounded_cycle", INFO, "a", BASE + 'a -> a [condition="outcome=fail"]; a -> b -> done'),
        ("fan_in", WARNING, "j", BASE + "j [shape=tripleoctagon]; a -> b -> j -> done"),
        ("fan_out", INFO, "p", BASE + "p [shape=component]; a -> p -> b -> done"),
        ("unique_names", WARNING, "a", BASE + "a [prompt=y]; a -> b -> done"),
        ("high_retry_count", INFO, "b", BASE + "b [max_retries=6]; a -> b -> done"),
        ("gate_choices", WARNING, "h", BASE + "h [shape=hexagon, human.default_choice=Perhaps]; a -> b -> h; "
         "h -> done [label=Yes]; h -> a [label=No]"),
        ("gate_choices", WARNING, "h->a", BASE + "h [shape=hexagon]; a -> b -> h; "
         'h -> done [label="[Y] Yes"]; h -> a [label="yes"]'),
        ("join_policy_valid", WARNING, "p", BASE + "p [shape=component, join_policy=k_of_n, k=3]; a -> p; p -> b; "
         "p -> done; b -> done"),
        ("edge_never_taken", WARNING, "a->b", WAYS + 'a -> b [condition="outcome=success && outcome=fail"]'),
        ("edge_never_taken", WARNING, "a->b", WAYS + 'a -> b [condition="context.tool_stdout=x"]'),
        ("edge_never_taken", WARNING, "a->b", WAYS + 'a -> b [condition="context.last_stage=c"]'),
        ("edge_never_taken", WARNING, "a->b", WAYS + 'a -> b [condition="context.n > 7 && context.n < 3"]'),
        ("edge_never_taken", WARNING, "d->b", WAYS + 'd [shape=diamond]; a -> d [condition="outcome=success"]; '
         'd -> b [condition="outcome=fail"]; d -> done'),
        ("no_edge_taken", WARNING, "h", WAYS + 'h [shape=hexagon]; a -> h; '
         'h -> b [label=Yes, condition="preferred_label=Ja"]'),
        ("attribute_value", WARNING, "b", BASE + "b [max_retries=many]; a -> b -> done"),
        ("attribute_value", WARNING, "b", BASE + "b [max_retries=-1]; a -> b -> done"),
        ("attribute_value", WARNING, "b", BASE + "b [goal_gate=maybe]; a -> b -> done"),
        ("attribute_value", WARNING, "b", BASE + "b [timeout=soon]; a -> b -> done"),
        ("attribute_value", WARNING, "b", BASE + "b [reasoning_effort=hi]; a -> b -> done"),
        ("attribute_value", WARNING, "", BASE + "default_max_retry=x; a -> b -> done"),
        ("attribute_value", WARNING, "a->b", BASE + "a -> b [weight=heavy]; b -> done"),
        ("attribute_name", WARNING, "b", BASE + "b [max_retry=1]; a -> b -> done"),
        ("attribute_name", WARNING, "b", BASE + "b [tool_comand=x]; a -> b -> done"),
        ("attribute_name", WARNING, "", BASE + "model_stylsheet=x; a -> b -> done"),
        ("attribute_name", WARNING, "a->b", BASE + "a -> b [conditon=x]; b -> done"),
        ("attribute_ignored", WARNING, "b", BASE + "b [temperature=0.5]; a -> b -> done"),
        ("attribute_ignored", WARNING, "c", BASE + 'c [shape=diamond, prompt="Is it?"]; a -> c -> done'),
        ("attribute_ignored", WARNING, "c", BASE + "c [shape=diamond, llm_model=m]; a -> c -> done"),
        ("attribute_ignored", WARNING, "c", BASE + 'c [shape=component, prompt="Do it"]; a -> c -> done'),
        ("attribute_ignored", WARNING, "c", BASE + "c [shape=hexagon, tool_command=ls]; a -> c -> done"),
        ("attribute_ignored", INFO, "start", BASE + "start [llm_model=m]; a -> done"),
        ("single_exit", WARNING, "end", WAYS + "end [shape=Msquare]; a -> end"),
        ("auto_approve", WARNING, "h", HUMAN + 'h -> a [label="[R] Reject"]; h -> done [label=Ship]'),
        ("auto_approve", WARNING, "h", HUMAN + "h -> c [label=Revise]; h -> done [label=Ship]; c [prompt=x]; c -> h"),
        ("attribute_ignored", WARNING, "", BASE + 'model_stylesheet="* { temperature: 0.5; }"; a -> b -> done'),
        ("attribute_ignored", WARNING, "b", BASE + "b [tool_hooks.pre=x]; a -> b -> done"),
        ("attribute_ignored", WARNING, "", BASE + "tool_hooks.post=x; a -> b -> done"),
        ("attribute_ignored", WARNING, "b", BASE + "b [prompt=x, timeout=5m]; a -> b -> done"),
    ],
)  # fmt: skip
def test_rule_finds_its_fault(rule: str, severity: str, place: str, text: str) -> None:
    findings = found(text, rule)
    assert findings, [finding.rule for finding in check(body(text))]
    assert findings[0].severity == severity
    assert (findings[0].node or findings[0].edge) == place
    assert findings[0].fix or severity == INFO
    assert findings[0].line == (2 if place else 0)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("reachability", BASE + "a [retry_target=b]; a -> done; b -> done"),
        ("reachability", BASE + "retry_target=b; a -> done; b -> done"),
        ("exit_reachable", BASE + "a -> b; b -> a; a -> done"),
        ("dead_end", BASE + "a -> b -> done"),
        ("gate_bypassable", BASE + "a [goal_gate=true, retry_target=a]; a -> b; b -> done; a -> done"),
        ("gate_bypassable", BASE + "p [shape=component]; j [shape=tripleoctagon]; g [prompt=x, goal_gate=true];"
         "a -> p; p -> b; p -> g; b -> j; g -> j; j -> done"),
        ("gate_bypassable", BASE + "b [goal_gate=true]; e [shape=Msquare]; a -> b; b -> done; b -> e"),
        ("outcome_word", BASE + 'a -> b [condition="outcome=skip"]; b -> done; '
         'a -> done [condition="outcome=port || outcome=yes"]'),
        ("gate_outcome", BASE + 'b [goal_gate=true]; a -> b; b -> done [condition="outcome=succeeded"]; b -> a'),
        ("gate_outcome", BASE + 'b [goal_gate=true]; a -> b; b -> done [condition="outcome=success"]; '
         'b -> a [condition="outcome=revise"]'),
        ("conditional_default", BASE + 'a -> b [condition="outcome=success"]; b -> done'),
        ("conditional_default", BASE + 'a -> b [condition="outcome=x"]; a -> done [condition="outcome!=x"]; b -> done'),
        ("conditional_default", BASE + 'a -> b [condition="!ok"]; a -> done [condition="ok"]; b -> done'),
        ("unbounded_cycle", BASE + "a -> b; b -> a; b -> done; max_node_visits=9"),
        ("unbounded_cycle", BASE + 'a [max_visits="2"]; a -> b; b -> a; b -> done'),
        ("edge_never_taken", WAYS + 'd [shape=diamond]; a -> d [condition="outcome=success"]; d -> done; '
         'd -> b [condition="outcome=fail"]; b [retry_target=d]'),
        ("edge_never_taken", WAYS + 'a -> b [condition="context.n > 0.5 && context.n < 0.6"]'),
        ("edge_never_taken", WAYS + 'a -> b [condition="NOT context.x && preferred_label!=Go"]'),
        ("no_edge_taken", WAYS + 'h [shape=hexagon]; a -> h; h -> b [condition="preferred_label=Fix"]; '
         'h -> done [label="[S] Ship", condition="preferred_label=ship"]'),
        ("conditional_default", WAYS + 'h [shape=hexagon]; a -> h; h -> b [condition="preferred_label=Fix"]; '
         'h -> done [condition="preferred_label=Ship"]'),
        ("attribute_value", BASE + 'b [max_retries="3", goal_gate="true", timeout="300"]; a -> b -> done'),
        ("attribute_value", BASE + 'b [timeout="$limit"]; a -> b -> done'),
        ("attribute_ignored", BASE + "c [shape=parallelogram, tool_command=x, timeout=5m]; a -> c -> done"),
        ("attribute_ignored", BASE + "c [shape=hexagon, timeout=5m]; a -> c -> done"),
        ("attribute_ignored", BASE + "node [llm_model=m]; c [shape=diamond]; a -> c -> done"),
        ("auto_approve", WAYS + 'h [shape=hexagon]; a -> h; h -> a [label="Reject"]; h -> done [label="Approve it"]; '
         'h [human.default_choice="Approve it"]'),
        ("attribute_name", BASE + 'b [is_codergen=true, fillcolor=red, x_own=1, node_type="stack.x"]; a -> b -> done'),
        ("prompt_on_llm_nodes", BASE + "c [llm_prompt=x]; d [label=Do]; a -> b -> c -> d -> done"),
        ("shape_known", BASE + "c [shape=star, type=tool, script=x]; a -> b -> c -> done"),
        ("type_known", BASE + "c [type=exec, command=x]; a -> b -> c -> done"),
        ("unique_names", BASE + "{rank=same; a; b}; a; a -> b -> done"),
        ("goal_gate_has_retry", BASE + "fallback_retry_target=a; b [goal_gate=true]; a -> b -> done"),
        ("join_policy_valid", BASE + "p [shape=component, join_policy=k_of_n, k=2]; a -> p; p -> {b done}; b -> done"),
    ],
)  # fmt: skip
def test_rule_leaves_what_is_right_alone(rule: str, text: str) -> None:
    assert found(text, rule) == []


def test_rules_name_unreachable_nodes_and_near_names() -> None:
    assert "unreachable" in found(BASE + "a -> done; b -> done", "reachability")[0].message
    assert (
        "Did you mean 'plan'?"
        in found(BASE + "plan [label=P]; a -> plann; a -> plan -> done; b", "edge_target_exists")[0].fix
    )
    assert "'tool'" in found(BASE + "c [type=toll]; a -> b -> c -> done", "type_known")[0].fix
    assert "'prompt'" not in found(BASE + "b [promt=x]; a -> b -> done", "attribute_name")[0].message


def test_rules_put_errors_first_and_then_go_by_lines() -> None:
    findings = check(body("z [shape=star]\n\na -> z\na [timeout=x]\nstart -> a\nstart -> b"))
    order = [(finding.severity, finding.line) for finding in findings]
    rank = {ERROR: 0, WARNING: 1, INFO: 2}
    assert order == sorted(order, key=lambda pair: (rank[pair[0]], pair[1]))
    assert {ERROR, WARNING} <= {severity for severity, _ in order}


def test_rules_take_further_ones_and_known_types() -> None:
    graph = body(SOUND + "own [type=mine]; plan -> own -> test")
    assert [finding.rule for finding in check(graph)] == ["type_known"]
    assert check(graph, known_types={"mine", "start", "exit", "tool", "wait.human", "codergen"}) == []
    extra = Diagnostic("house", ERROR, "Not in this house.", fix="Go elsewhere.")
    assert check(body(SOUND), extra=[lambda graph: [extra]]) == [extra]


def test_check_or_raise_names_the_first_error_and_keeps_all_findings() -> None:
    with pytest.raises(GraphError) as caught:
        check_or_raise(body(BASE + "a -> done; b -> done; a -> dne; a [timeout=x]"))
    assert (
        caught.value.message
        == "Line 2: The target 'dne' of edge 'a->dne' is not declared (it does not exist). (and 1 more)"
    )
    assert caught.value.hint
    assert {finding.severity for finding in caught.value.data["diagnostics"]} == {ERROR, WARNING}


def test_diagnostic_json_has_the_specifications_names() -> None:
    finding = found(BASE + "a -> done; b -> done", "reachability")[0]
    assert finding.to_json() == {
        "rule": "reachability", "severity": "ERROR", "message": "Node 'b' is unreachable from 'start'.",
        "node_id": "b", "edge": None, "line": 2, "fix": "Add an edge that leads to it, or remove the node.",
    }  # fmt: skip


def test_tool_commands_lists_every_command() -> None:
    graph = body(
        'a [type=exec, command="one"] b [shape=parallelogram, script="two\\nlines"]'
        "c [shape=box, tool_command=no] d [type=tool]"
    )
    assert tool_commands(graph) == [("a", "one"), ("b", "two\nlines")]


def test_rules_see_through_large_graphs() -> None:
    count = 3000
    gates = "".join(f"n{i} [prompt=x, goal_gate=true];" for i in range(count))
    chain = " -> ".join(f"n{i}" for i in range(count))
    text = f"start [shape=Mdiamond] done [shape=Msquare] retry_target=n0; {gates} start -> {chain} -> done; n5 -> n7"
    assert [(finding.rule, finding.node) for finding in check(body(text))] == [("gate_bypassable", "n6")]
