"""The rules: each finds its fault, names the place and a fix, and leaves a sound graph and the field's files alone."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from pipeline.dot.diagnostics import ERROR, INFO, WARNING, Diagnostic
from pipeline.dot.drawing import as_text, graphviz_source
from pipeline.dot.model import DotGraph
from pipeline.dot.parser import parse, read_graph
from pipeline.dot.rules import check, check_or_raise, tool_commands
from pipeline.dot.stylesheet import apply
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
        ("retry_target_exists", WARNING, "c", BASE + "c [retry_target=nope, prompt=x]; a -> b -> c -> done"),
        ("goal_gate_has_retry", WARNING, "c", BASE + "c [goal_gate=true, prompt=x]; a -> b -> c -> done"),
        ("prompt_on_llm_nodes", WARNING, "c", BASE + "c; a -> b -> c -> done"),
        ("tool_has_command", WARNING, "c", BASE + "c [shape=parallelogram]; a -> b -> c -> done"),
        ("gate_bypassable", WARNING, "b", BASE + "b [goal_gate=true, retry_target=a]; a -> b; b -> done; a -> done"),
        ("gate_outcome", WARNING, "b->done", BASE + 'b [goal_gate="true", retry_target=a]; a -> b; '
         'b -> done [condition="outcome=pass"]; b -> a'),
        ("outcome_word", WARNING, "a->b", BASE + 'a -> b [condition="outcome=sucess"]; a -> done; b -> done'),
        ("conditional_default", WARNING, "a", BASE + 'a -> b [condition="outcome=x"]; b -> done; '
         'a -> done [condition="outcome=y"]'),
        ("unbounded_cycle", WARNING, "a", BASE + "a -> b; b -> a; b -> done"),
        ("unbounded_cycle", INFO, "a", BASE + 'a -> b; b -> a [condition="outcome=fail"]; b -> done'),
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
        ("attribute_value", WARNING, "a->b", BASE + "a -> b [weight=heavy]; b -> done"),
        ("attribute_name", WARNING, "b", BASE + "b [max_retry=1]; a -> b -> done"),
        ("attribute_name", WARNING, "a->b", BASE + "a -> b [conditon=x]; b -> done"),
        ("attribute_ignored", WARNING, "b", BASE + "b [temperature=0.5]; a -> b -> done"),
        ("attribute_ignored", WARNING, "c", BASE + 'c [shape=diamond, prompt="Is it?"]; a -> c -> done'),
        ("attribute_ignored", WARNING, "c", BASE + "c [shape=hexagon, tool_command=ls]; a -> c -> done"),
        ("attribute_ignored", INFO, "start", BASE + "start [llm_model=m]; a -> done"),
        ("single_exit", WARNING, "end", WAYS + "end [shape=Msquare]; a -> end"),
        ("auto_approve", WARNING, "h", HUMAN + 'h -> a [label="[R] Reject"]; h -> done [label=Ship]'),
        ("auto_approve", WARNING, "h", HUMAN + "h -> c [label=Revise]; h -> done [label=Ship]; c [prompt=x]; c -> h"),
        ("attribute_ignored", WARNING, "", BASE + 'model_stylesheet="* { temperature: 0.5; }"; a -> b -> done'),
        ("attribute_ignored", WARNING, "b", BASE + "b [tool_hooks.pre=x]; a -> b -> done"),
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


def test_rules_name_near_names() -> None:
    assert "'plan'" in found(BASE + "plan [label=P]; a -> plann; a -> plan -> done; b", "edge_target_exists")[0].fix
    assert "'tool'" in found(BASE + "c [type=toll]; a -> b -> c -> done", "type_known")[0].fix


def test_rules_take_further_ones_and_known_types() -> None:
    graph = body(SOUND + "own [type=mine]; plan -> own -> test")
    assert [finding.rule for finding in check(graph)] == ["type_known"]
    assert check(graph, known_types={"mine", "start", "exit", "tool", "wait.human", "codergen"}) == []
    extra = Diagnostic("house", ERROR, "Not in this house.", fix="Go elsewhere.")
    assert check(body(SOUND), extra=[lambda graph: [extra]]) == [extra]


def test_check_or_raise_names_the_first_error_and_keeps_all_findings() -> None:
    with pytest.raises(GraphError) as caught:
        check_or_raise(body(BASE + "a -> done; b -> done; a -> dne; a [timeout=x]"))
    assert caught.value.code == "edge_target_exists"
    assert caught.value.hint
    assert {finding.severity for finding in caught.value.data["diagnostics"]} == {ERROR, WARNING}


def test_rules_see_through_large_graphs() -> None:
    count = 3000
    gates = "".join(f"n{i} [prompt=x, goal_gate=true];" for i in range(count))
    chain = " -> ".join(f"n{i}" for i in range(count))
    text = f"start [shape=Mdiamond] done [shape=Msquare] retry_target=n0; {gates} start -> {chain} -> done; n5 -> n7"
    assert [(finding.rule, finding.node) for finding in check(body(text))] == [("gate_bypassable", "n6")]


FOLDER = Path(__file__).resolve().parents[4] / "shared" / "dots"


ROWS: list[dict[str, str]] = []
if (FOLDER / "MANIFEST.tsv").is_file():
    ROWS = list(csv.DictReader((FOLDER / "MANIFEST.tsv").read_text("utf-8").splitlines(), delimiter="\t"))
real = pytest.mark.skipif(not ROWS, reason="the real files are not beside this copy")


@real
@pytest.mark.parametrize("row", ROWS, ids=[row["file"] for row in ROWS])
def test_real_file_is_read_whole_and_can_be_run_drawn_and_parsed_again(row: dict[str, str]) -> None:
    graph = apply(read_graph(FOLDER / row["file"]))
    assert (len(graph.nodes), len(graph.edges)) == (int(row["nodes"]), int(row["edges"]))
    assert all(node.declared for node in graph.nodes.values())
    assert [finding for finding in check(graph) if finding.severity == ERROR] == []
    assert all(name in as_text(graph) for name in graph.nodes)
    assert len(parse(graphviz_source(graph)).nodes) == len(graph.nodes)


@real
def test_real_files_keep_what_lesser_parsers_lose() -> None:
    assert "→" in read_graph(FOLDER / "streamweave_beads_worker_loop.dot").text("label")
    consensus = read_graph(FOLDER / "strongdm_consensus_task.dot")
    assert sum(bool(node.text("llm_prompt")) for node in consensus.nodes.values()) == 15
    assert consensus.nodes["CheckDoD"].seconds("timeout") == 120
    styled = apply(read_graph(FOLDER / "fabro_styled.dot"))
    assert [styled.nodes[name].text("llm_model") for name in ("plan", "implement", "critical_review")] == [
        "claude-sonnet-4-5", "claude-opus-4-6", "gpt-5.2",
    ]  # fmt: skip
    template = read_graph(FOLDER / "kilroy_reference_template.dot")
    assert template.nodes["dod_a"].classes == ("branch-a", "dod-fanout")
    assert len(tool_commands(template)) == 6
    sprint = read_graph(FOLDER / "tracker_sprint_exec.dot")
    assert "printf 'sprint_id\\ttitle" in sprint.nodes["EnsureLedger"].command
