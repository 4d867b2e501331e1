"""LangGraphSaver: what LangGraph's own conformance suite leaves to each saver."""

from __future__ import annotations

import json
import operator
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from pipeline import LangGraphSaver, fork_run
from pipeline.app.travel import fork
from pipeline.clock import SystemClock
from pipeline.errors import CheckpointCorrupt, ConfigError, RunExists, RunLocked
from pipeline.extras import how_to_install
from pipeline.formats.langgraph.thread import KeptCheckpoint, Key, Stored, Thread
from pipeline.formats.langgraph.threads import Threads
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryStore
from pipeline.store.names import JOURNAL
from pipeline.store.run_folder import RunFolder
from tests.codes import coded
from tests.threads import put, thread

CLOCK = SystemClock()


class State(TypedDict):
    words: Annotated[list[str], operator.add]


def asking(saver: Any) -> Any:
    def first(state: State) -> dict[str, list[str]]:
        return {"words": ["first"]}

    def ask(state: State) -> dict[str, list[str]]:
        return {"words": [interrupt("which?")]}

    graph = StateGraph(State).add_node("first", first).add_node("ask", ask)
    return graph.add_edge(START, "first").add_edge("first", "ask").add_edge("ask", END).compile(checkpointer=saver)


def walk(saver: Any) -> list[Any]:
    """What a person sees of a graph: stopped, answered, looked back at, forked."""
    graph, config = asking(saver), {"configurable": {"thread_id": "one"}}
    seen = [graph.invoke({"words": []}, config)["__interrupt__"][0].value]
    seen.append(graph.invoke(Command(resume="this"), config)["words"])
    history = list(graph.get_state_history(config))
    seen.append([(state.next, state.values, state.metadata["step"]) for state in history])
    old = next(state for state in history if state.next == ("ask",))
    forked = graph.update_state(old.config, {"words": ["again"]}, as_node="first")
    graph.invoke(None, forked)
    seen.append(graph.invoke(Command(resume="that"), config)["words"])
    seen.append(graph.get_state(old.config).values)
    seen.append(len(list(graph.get_state_history(config))))
    return seen


def test_langgraph_saver_does_for_a_graph_what_the_one_in_memory_does(tmp_path: Path) -> None:
    assert walk(LangGraphSaver(f"files:{tmp_path}")) == walk(InMemorySaver())


def test_langgraph_saver_goes_on_in_another_process(tmp_path: Path) -> None:
    config = {"configurable": {"thread_id": "one"}}
    asking(LangGraphSaver(f"files:{tmp_path}")).invoke({"words": []}, config)
    done = asking(LangGraphSaver(f"files:{tmp_path}")).invoke(Command(resume="this"), config)
    assert done["words"] == ["first", "this"]


def test_langgraph_saver_takes_turns_with_another_saver_on_one_thread(tmp_path: Path) -> None:
    one, other = LangGraphSaver(f"files:{tmp_path}"), LangGraphSaver(f"files:{tmp_path}")
    first = put(one, "shared", x=1)
    second = put(other, "shared", first, x=2)
    third = put(one, "shared", second, x=3)
    assert [each.checkpoint["id"] for each in other.list(thread("shared"))] == [third, second, first]
    assert len(list(FileStore(tmp_path, CLOCK).heads())) == 1


def test_langgraph_saver_says_who_writes_to_a_thread_where_it_waits_in_vain(tmp_path: Path) -> None:
    saver = LangGraphSaver(f"files:{tmp_path}", wait_seconds=0)
    first = put(saver, "busy", x=1)
    run = next(FileStore(tmp_path, CLOCK).heads()).run_id
    journal = FileStore(tmp_path, CLOCK).open(run)
    with pytest.raises(RunLocked, check=coded("run_locked", thread="busy")) as caught:
        put(saver, "busy", first, x=2)
    assert "thread_id" in caught.value.hint
    put(saver, "free", x=1)
    assert saver.get_tuple(thread("busy")) is not None
    journal.close()
    put(saver, "busy", first, x=2)


def test_langgraph_saver_waits_while_another_writes(tmp_path: Path) -> None:
    saver = LangGraphSaver(f"files:{tmp_path}")
    first = put(saver, "busy", x=1)
    store = FileStore(tmp_path, CLOCK)
    journal = store.open(next(store.heads()).run_id)
    waiting = threading.Thread(target=put, args=(saver, "busy", first), kwargs={"x": 2})
    waiting.start()
    journal.close()
    waiting.join(10)
    assert len(list(saver.list(thread("busy")))) == 2


def test_langgraph_saver_makes_one_run_of_a_thread_that_many_begin(tmp_path: Path) -> None:
    savers = [LangGraphSaver(f"files:{tmp_path}") for _ in range(4)]
    begun = [threading.Thread(target=put, args=(saver, "new"), kwargs={"x": at}) for at, saver in enumerate(savers)]
    for each in begun:
        each.start()
    for each in begun:
        each.join(20)
    assert len(list(savers[0].list(thread("new")))) == 4
    assert len(list(FileStore(tmp_path, CLOCK).heads())) == 1


@pytest.mark.parametrize("name", ["../../escape", "/etc/passwd", "a\0b", "", "é\ud800", "x" * 5000, "..", "a/b"])
def test_langgraph_saver_takes_any_text_as_a_thread(name: str, tmp_path: Path) -> None:
    saver = LangGraphSaver(f"files:{tmp_path / 'store'}")
    made = put(saver, name, x=1)
    found = LangGraphSaver(f"files:{tmp_path / 'store'}").get_tuple(thread(name))
    assert found is not None
    assert found.checkpoint["id"] == made
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    saver.delete_thread(name)
    assert saver.get_tuple(thread(name)) is None


def test_langgraph_saver_refuses_a_config_without_a_thread() -> None:
    with pytest.raises(ConfigError, check=coded("no_thread_id")):
        LangGraphSaver("memory:").get_tuple({"configurable": {}})


@pytest.mark.parametrize(
    ("store", "words"),
    [
        ("nonsense", r"LangGraphSaver\(store\) is 'nonsense', which is not a store"),
        ("sqlite:", r"LangGraphSaver\(store\): sqlite: names no file"),
        ("x://ann:secret@host/db", r"LangGraphSaver\(store\) is 'x:…', which is not a store"),
        (None, r"LangGraphSaver\(store\) is of type NoneType"),
    ],
)
def test_langgraph_saver_says_which_argument_names_no_store(store: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        LangGraphSaver(store)
    assert "--store" not in caught.value.message


@pytest.mark.parametrize("seconds", [-1, "10", None, float("nan"), True])
def test_langgraph_saver_says_what_seconds_to_wait_may_be(seconds: Any) -> None:
    with pytest.raises(ConfigError, check=coded("invalid_wait")):
        LangGraphSaver("memory:", wait_seconds=seconds)


def test_langgraph_saver_refuses_the_folder_of_one_run(tmp_path: Path) -> None:
    store = FileStore(tmp_path, CLOCK)
    saver = LangGraphSaver(store)
    put(saver, "t", x=1)
    folder = tmp_path / next(store.heads()).run_id
    with pytest.raises(ConfigError, check=coded("not_a_store")):
        LangGraphSaver(f"files:{folder}")
    with pytest.raises(ConfigError, check=coded("not_a_store")):
        LangGraphSaver(RunFolder(folder, CLOCK))


def test_langgraph_saver_stores_no_settings_that_may_be_secrets(tmp_path: Path) -> None:
    saver = LangGraphSaver(f"files:{tmp_path}")
    key = "sk-ant-api03-not-a-real-key-0123456789"
    config = {"configurable": {"thread_id": "t", "openai_api_key": "hunter-2", "note": key, "user": "ann"}}
    asking(saver).invoke({"words": []}, config)
    found = saver.get_tuple(thread("t"))
    assert found is not None
    assert found.metadata["user"] == "ann"  # type: ignore[typeddict-item]
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    names = {name for each in saver.list(thread("t")) for name in each.metadata}
    assert names.isdisjoint({"openai_api_key", "note"})
    assert b"hunter-2" not in stored


def test_langgraph_saver_stores_a_large_value_once(tmp_path: Path) -> None:
    saver = LangGraphSaver(f"files:{tmp_path}")
    text = "word " * 20_000
    first = put(saver, "large", text=text, n=1)
    again = {
        **empty_checkpoint(),
        "channel_values": {"text": text, "n": 2},
        "channel_versions": {"text": "1", "n": "2"},
    }
    saver.put(thread("large", checkpoint_id=first), again, {"source": "loop"}, {"n": "2"})  # type: ignore[arg-type]
    found = LangGraphSaver(f"files:{tmp_path}").get_tuple(thread("large"))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"text": text, "n": 2}
    assert sum(path.is_file() for path in tmp_path.rglob("blobs/*/*")) == 1
    journal = next(tmp_path.rglob(JOURNAL))
    assert journal.stat().st_size < 10_000


def test_langgraph_saver_frees_what_is_pruned(tmp_path: Path) -> None:
    saver = LangGraphSaver(f"files:{tmp_path}")
    parent = ""
    for at in range(5):
        parent = put(saver, "long", parent, text=str(at) * 5000)
    other = LangGraphSaver(f"files:{tmp_path}")
    assert len(list(other.list(thread("long")))) == 5
    saver.prune(["long"])
    assert sum(path.is_file() for path in tmp_path.rglob("blobs/*/*")) == 1
    assert len(list(FileStore(tmp_path, CLOCK).heads())) == 1
    # One that knew the thread from before finds where it is now.
    put(other, "long", parent, text="more")
    kept = list(saver.list(thread("long")))
    assert [each.checkpoint["channel_values"]["text"] for each in kept] == ["more", "4" * 5000]
    with pytest.raises(ConfigError, check=coded("unknown_strategy")):
        saver.prune(["long"], strategy="some")


def test_langgraph_saver_that_died_while_it_pruned_has_lost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore(CLOCK)
    saver = LangGraphSaver(store)
    first = put(saver, "t", x=1)
    second = put(saver, "t", first, x=2)

    def die(*_: object, **__: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Threads, "_make", die)
        with pytest.raises(KeyboardInterrupt):
            saver.prune(["t"])
    assert len(list(LangGraphSaver(store).list(thread("t")))) == 2
    with monkeypatch.context() as patched:
        patched.setattr(Threads, "_delete", die)
        with pytest.raises(KeyboardInterrupt):
            saver.prune(["t"])
    # Both runs are there: the new one counts.
    for each in (saver, LangGraphSaver(store)):
        assert [found.checkpoint["id"] for found in each.list(thread("t"))] == [second]
    put(saver, "t", second, x=3)
    assert len(list(LangGraphSaver(store).list(thread("t")))) == 2
    saver.delete_thread("t")
    assert list(store.heads()) == []


def kept(name: str, parent: str | None, **values: Any) -> KeptCheckpoint:
    row = {channel: (1, Stored("json", b"1")) for channel in values}
    return KeptCheckpoint(Key("", name), parent, Stored("json"), Stored("json"), row)


def test_langgraph_pruning_keeps_what_a_channel_of_deltas_is_put_together_from() -> None:
    found = Thread("run")
    for each in (kept("1", None, log=1), kept("2", "1", log=1), kept("3", "2"), kept("4", "3", x=1)):
        found.checkpoints[each.key] = each
    assert {key.id for key in found.newest(lambda _: ["log"])} == {"2", "3", "4"}
    assert {key.id for key in found.newest(lambda _: [])} == {"4"}
    assert {key.id for key in found.newest(lambda _: ["x", "gone"])} == {"1", "2", "3", "4"}


def joined(log: list[str] | None, writes: Sequence[list[str]]) -> list[str]:
    return [*(log or []), *(each for write in writes for each in write)]


class Log(TypedDict):
    log: Annotated[list[str], DeltaChannel(joined, list, snapshot_frequency=4)]


def test_langgraph_graph_with_a_channel_of_deltas_goes_on_after_pruning_and_copying() -> None:
    saver = LangGraphSaver("memory:")
    made = StateGraph(Log).add_node("a", lambda state: {"log": [f"a{len(state['log'])}"]})
    graph = made.add_edge(START, "a").add_edge("a", END).compile(checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "one"}}
    for _ in range(5):
        log = graph.invoke({"log": ["in"]}, config)["log"]
    before = len(list(saver.list(config)))
    saver.prune(["one"])
    assert len(list(saver.list(config))) < before
    assert graph.get_state(config).values["log"] == log
    saver.copy_thread("one", "two")
    again: Any = {"configurable": {"thread_id": "two"}}
    assert graph.invoke({"log": ["more"]}, again)["log"] == [*log, "more", f"a{len(log) + 1}"]


def test_langgraph_thread_is_not_forked_as_a_run_of_ours_and_a_fork_would_not_be_it() -> None:
    store = MemoryStore(CLOCK)
    saver = LangGraphSaver(store)
    first = put(saver, "t", x=1)
    run = next(store.heads()).run_id
    with pytest.raises(ConfigError, match="holds a LangGraph thread"):
        fork(store, run, at="end", assignments=[])
    fork_run(store, run)
    put(LangGraphSaver(store), "t", first, x=2)
    assert len(list(saver.list(thread("t")))) == 2


def test_langgraph_saver_does_not_copy_over_a_thread() -> None:
    saver = LangGraphSaver("memory:")
    put(saver, "a", x=1)
    put(saver, "b", x=2)
    with pytest.raises(RunExists, check=coded("thread_exists")):
        saver.copy_thread("a", "b")
    found = saver.get_tuple(thread("b"))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"x": 2}


def test_langgraph_saver_says_which_value_is_damaged(tmp_path: Path) -> None:
    saver = LangGraphSaver(f"files:{tmp_path}")
    first = put(saver, "t", text="a" * 5000)
    put(saver, "t", first, text="b" * 5000, more="1")
    blobs = [path for path in tmp_path.rglob("blobs/*/*") if path.is_file()]
    for path in blobs:
        path.write_bytes(b"?")
    with pytest.raises(CheckpointCorrupt):
        LangGraphSaver(f"files:{tmp_path}").get_tuple(thread("t"))


def test_langgraph_saver_reads_past_a_damaged_record(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    saver = LangGraphSaver(f"files:{tmp_path}")
    first = put(saver, "t", x=1)
    second = put(saver, "t", first, x=2)
    third = put(saver, "t", second, x=3)
    journal = next(tmp_path.rglob(JOURNAL))
    lines = journal.read_bytes().splitlines(keepends=True)
    at = next(place for place, line in enumerate(lines) if second.encode() in line)
    lines[at] = lines[at].replace(b'"step"', b'"stop"').replace(second.encode(), second[::-1].encode(), 1)
    journal.write_bytes(b"".join(lines))
    found = [each.checkpoint["id"] for each in LangGraphSaver(f"files:{tmp_path}").list(thread("t"))]
    assert found == [third, first]
    assert "damaged" in caplog.text


def test_langgraph_versions_grow_and_differ_between_branches() -> None:
    saver = LangGraphSaver("memory:")
    assert saver.get_next_version(None, None) < saver.get_next_version(9, None) < saver.get_next_version(10, None)
    old = saver.get_next_version(None, None)
    one, other = saver.get_next_version(old, None), saver.get_next_version(old, None)
    assert one != other
    assert min(one, other) > old


@pytest.fixture
def bare() -> Callable[[str], str]:
    """Runs Python where LangGraph is not installed."""

    def run(code: str) -> str:
        hidden = "import sys\nsys.modules['langgraph'] = None\n"
        done = subprocess.run([sys.executable, "-c", hidden + code], capture_output=True, text=True, check=True)
        return done.stdout

    return run


def test_langgraph_saver_without_its_extra_says_how_to_install_it(bare: Callable[[str], str]) -> None:
    code = """
import json
from pipeline import *
import pipeline
try:
    pipeline.LangGraphSaver
except pipeline.ConfigError as error:
    print(json.dumps([error.message, error.hint]))
"""
    message, hint = json.loads(bare(code))
    assert "not installed" in message
    assert hint == how_to_install("langgraph")
