"""Child pipelines: worked into their parent's graph, started, called off, failed; where their files may lie."""

from __future__ import annotations

from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from pipeline.dot.parser import parse
from pipeline.errors import GraphError
from pipeline.formats.attractor.children import CHILD_OF, child_texts, from_folder, from_texts, inline_children
from pipeline.llm.base import Request
from tests.unit.formats.acting import ENDS, Act, system

PARENT = (
    'graph [goal="big"]\nm [shape=house, stack.child_dotfile="child.dot"{more}]\nend [prompt=End]\nstart -> m\n'
    "{edges}\nend -> exit"
)
CHILD = (
    f'digraph child {{ graph [goal="small"]\n{ENDS}one [prompt="$goal"]\ntwo [prompt=Two]\n'
    "start -> one -> two -> exit }"
)


def family(child: str = CHILD, *, more: str = "", edges: str = "m -> end", script: Any = None, **others: str) -> Act:
    return Act(PARENT.format(more=more, edges=edges), script, children={"child.dot": child, **others})


def test_a_child_runs_in_its_parents_journal_and_goes_on_where_it_was() -> None:
    act = family()
    assert act.go(until="m.one").detail == "stopped_as_asked"
    assert act.go().status == "completed"
    assert act.order == ["start", "m", "m.start", "m.one", "m.two", "m.exit", "m#2", "end", "exit"]
    assert act.prompts == ["small", "Two", "End"]
    assert (act.context("stack.child.status"), act.context("stack.child.outcome")) == ("completed", "success")
    assert act.visit("m#2").outputs["child_outcome"] == "success"


@pytest.mark.parametrize(
    ("edges", "after"), [("m -> end", []), ('m -> end [condition="outcome=fail"]\nm -> exit', ["end", "exit"])]
)
def test_a_child_that_fails_fails_its_supervisor_whose_edges_may_accept_it(edges: str, after: list[str]) -> None:
    act = family(edges=edges, script=lambda request: "STATUS: fail" if request.label == "m.two" else "ok")
    assert act.go().status == ("completed" if after else "failed")
    assert act.order == ["start", "m", "m.start", "m.one", "m.two", "m#2", *after]
    assert "failed at two" in str((act.visit("m#2").error or {})["message"])
    assert act.context("stack.child.status") == "failed"
    assert act.visit("m#2").status == "failed"
    assert act.visit("m.two").reason == "child_failed"


def test_a_stop_condition_calls_the_child_off() -> None:
    act = family(more=', manager.stop_condition="context.last_response=enough"', script=["enough", "never", "never"])
    act.go()
    assert act.order == ["start", "m", "m.start", "m.one", "m#2", "end", "exit"]
    assert act.visit("m.one").reason == "stop_condition"
    assert act.context("stack.child.status") == "stopped"


def test_a_child_that_goes_round_in_circles_is_called_off() -> None:
    child = f'digraph child {{ {ENDS}one [prompt=One]\nstart -> one -> one\none -> exit [condition="outcome=done"] }}'
    act = family(child, more=", manager.max_cycles=5")
    result = act.go()
    assert result.status == "failed"
    assert "had not ended after 5 visits" in str(result.error)
    assert [path for path in act.order if path.startswith("m.")] == [
        "m.start",
        *(f"m.one#{n}".removesuffix("#1") for n in range(1, 5)),
    ]


@pytest.mark.parametrize("again", ["success", "fail"])
def test_a_goal_gate_of_the_child_is_asked_for_at_the_childs_exit(again: str) -> None:
    child = (
        f"digraph child {{ {ENDS}one [prompt=One]\ngate [prompt=Gate, goal_gate=true, retry_target=one]\n"
        'start -> one -> gate\ngate -> exit [condition="outcome=success"]\ngate -> exit [condition="outcome=fail"] }'
    )
    verdicts = chain(["fail"], repeat(again))

    def script(request: Request) -> str:
        return f"STATUS: {next(verdicts)}" if request.label == "m.gate" else "ok"

    act = family(child, script=script)
    assert act.go().status == ("completed" if again == "success" else "failed")
    assert act.order[:9] == ["start", "m", "m.start", "m.one", "m.gate", "m.exit", "m.one#2", "m.gate#2", "m.exit#2"]
    assert act.visit("m.exit").reason == "goal_gate"
    assert act.visit("m#2").status == act.state.status


def test_the_parents_retry_target_does_not_reach_into_the_child() -> None:
    act: Act = Act(
        'graph [retry_target=first]\nfirst [prompt=First]\nm [shape=house, stack.child_dotfile="child.dot"]\n'
        "start -> first -> m -> exit",
        lambda request: "STATUS: fail" if request.label == "m.one" and len(act.model.requests) < 3 else "ok",
        children={"child.dot": CHILD},
    )
    assert act.go().status == "completed"
    assert act.order[:7] == ["start", "first", "m", "m.start", "m.one", "m#2", "first#2"]


def test_a_childs_own_defaults_hold_for_its_nodes_alone() -> None:
    child = (
        f'digraph child {{ graph [default_max_retries=2, default_fidelity=truncate, goal="small", llm_model="m-2"]\n'
        f"{ENDS}one [prompt=One]\nstart -> one -> exit }}"
    )
    graph = inline_children(
        parse(f"digraph p {{ {ENDS}{PARENT.format(more='', edges='m -> end')} }}"), from_texts({"child.dot": child})
    )
    one, end = graph.nodes["m.one"], graph.nodes["end"]
    assert (one.number("max_retries"), one.text("fidelity"), one.text("llm_model")) == (2, "truncate", "m-2")
    assert (end.number("max_retries"), end.text("fidelity"), end.text("llm_model")) == (None, "", "")
    act = family(child)
    act.go()
    assert [system(request).partition("\n")[0] for request in act.model.requests] == [
        "The goal: small",
        "The goal: big",
    ]


def test_children_may_have_children() -> None:
    middle = f'digraph middle {{ {ENDS}n [shape=house, stack.child_dotfile="sub/leaf.dot"]\nstart -> n -> exit }}'
    leaf = f"digraph leaf {{ {ENDS}work [prompt=Work]\nstart -> work -> exit }}"
    act = family(middle, **{"sub/leaf.dot": leaf})
    assert act.go().status == "completed"
    assert act.order == [
        "start", "m", "m.start", "m.n", "m.n.start", "m.n.work", "m.n.exit", "m.n#2", "m.exit", "m#2", "end", "exit",
    ]  # fmt: skip
    assert act.dot.nodes["m.n.work"].text(CHILD_OF) == "m.n"


def test_a_child_in_a_branch_stays_in_it() -> None:
    act = Act(
        'fan [shape=component]\nm [shape=house, stack.child_dotfile="child.dot"]\nb [prompt=B]\n'
        "all [shape=tripleoctagon]\nstart -> fan\nfan -> m -> all\nfan -> b -> all\nall -> exit",
        lambda request: "STATUS: fail" if request.label == "m.two" else "ok",
        children={"child.dot": CHILD},
    )
    assert act.go().status == "completed"
    assert [(row["id"], row["status"]) for row in act.context("parallel.results")] == [("m", "fail"), ("b", "success")]


def test_ids_that_a_child_suggests_are_its_own() -> None:
    child = (
        f"digraph child {{ {ENDS}one [prompt=One]\na [prompt=A]\nb [prompt=B]\nstart -> one\none -> a\none -> b\n"
        "a -> exit\nb -> exit }"
    )
    reply = '```json\n{"outcome": "success", "suggested_next_ids": ["b"]}\n```'
    act = family(child, script=lambda request: reply if request.label == "m.one" else "ok")
    act.go()
    assert "m.b" in act.order
    assert "m.a" not in act.order


def test_a_child_that_is_not_to_be_started_is_passed_by() -> None:
    act = Act("m [shape=house, stack.child_autostart=false]\nstart -> m -> exit")
    assert act.go().status == "completed"


@pytest.mark.parametrize(
    ("child", "code"),
    [
        ("digraph child { start [shape=Mdiamond]\nlost [prompt=x]\nstart -> nowhere }", "terminal_node"),
        (f"digraph child {{ {ENDS}m [shape=house]\nstart -> m -> exit }}", "child_missing"),
        (
            f'digraph child {{ {ENDS}n [shape=house, stack.child_dotfile="child.dot"]\nstart -> n -> exit }}',
            "child_cycle",
        ),
    ],
)
def test_a_child_with_faults_is_refused(child: str, code: str) -> None:
    with pytest.raises(GraphError) as caught:
        family(child)
    assert caught.value.code == code


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def supervising(name: str) -> str:
    return f'digraph p {{ {ENDS}m [shape=house, stack.child_dotfile="{name}"]\nstart -> m -> exit }}'


def test_children_are_found_beside_their_parent_and_below(tmp_path: Path) -> None:
    written(tmp_path, "sub/child.dot", supervising("leaf.dot"))
    written(tmp_path, "sub/leaf.dot", CHILD)
    parent = parse(supervising("sub/child.dot"))
    texts = child_texts(parent, from_folder(tmp_path))
    assert sorted(texts) == ["sub/child.dot", "sub/leaf.dot"]
    again = inline_children(parent, from_texts(texts))
    assert again == inline_children(parent, from_folder(tmp_path))
    assert "m.m.one" in again.nodes


@pytest.mark.parametrize("name", ["../outside.dot", "sub/../../outside.dot", "link.dot"])
def test_children_outside_the_parents_folder_are_refused(tmp_path: Path, name: str) -> None:
    home = tmp_path / "home"
    written(home, "sub/x.dot", CHILD)
    outside = written(tmp_path, "outside.dot", CHILD)
    (home / "link.dot").symlink_to(outside)
    with pytest.raises(GraphError) as caught:
        inline_children(parse(supervising(name)), from_folder(home))
    assert caught.value.code == "child_outside"


def test_the_parents_own_file_may_name_an_absolute_path_and_no_child_may(tmp_path: Path) -> None:
    outside = written(tmp_path, "other/outside.dot", supervising("leaf.dot"))
    written(tmp_path, "other/leaf.dot", CHILD)
    above = written(tmp_path, "other/above.dot", supervising("../leaf.dot"))
    home = tmp_path / "home"
    written(home, "child.dot", supervising(str(outside)))
    assert "m.m.one" in inline_children(parse(supervising(str(outside))), from_folder(home)).nodes
    for refused in ("child.dot", str(above)):
        with pytest.raises(GraphError) as caught:
            inline_children(parse(supervising(refused)), from_folder(home))
        assert caught.value.code == "child_outside"


def test_attributes_that_stand_for_ours_are_not_taken_from_a_file() -> None:
    act = Act('a [prompt=A, "stack.child_of"=b]\nb [prompt=B]\nstart -> a\na -> b [virtual=child]\nb -> exit')
    assert act.go().status == "completed"
    assert act.order == ["start", "a", "b", "exit"]


@pytest.mark.parametrize(("said", "where"), [("sub", "sub"), ("", ""), ("../elsewhere", None)])
def test_a_childs_commands_run_where_its_supervisor_says_below_the_runs_folder(
    tmp_path: Path, said: str, where: str | None
) -> None:
    (tmp_path / "sub").mkdir()
    child = f'digraph child {{ {ENDS}one [shape=parallelogram, tool_command="pwd"]\nstart -> one -> exit }}'
    act = family(child, more=f', stack.child_workdir="{said}"')
    result = act.go(allow_tools=True, services={"workdir": str(tmp_path)})
    if where is None:
        assert result.status == "failed"
        assert "does not lie below" in str((act.visit("m.one").error or {})["message"])
    else:
        assert Path(act.visit("m.one").outputs["output"]) == (tmp_path / where).resolve()


@pytest.mark.parametrize(
    "text", ["API_KEY=TOPSECRET", "TOPSECRET", '"TOPSECRET" {', "# x\n'TOPSECRET'", "TOPSECRET: {}"]
)
def test_file_that_is_no_graph_is_not_repeated_in_the_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "child.dot").write_text(text)
    with pytest.raises(GraphError) as caught:
        from_folder(tmp_path)("child.dot")
    assert "TOPSECRET" not in f"{caught.value.message} {caught.value.hint} {caught.value.data}"
    assert "child.dot" in caught.value.message
