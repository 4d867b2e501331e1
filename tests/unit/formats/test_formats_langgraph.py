"""LangGraphSaver: what LangGraph's own conformance suite leaves to each saver."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import END, START, StateGraph

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


def test_langgraph_saver_refuses_senseless_arguments(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, check=coded("no_thread_id")):
        LangGraphSaver("memory:").get_tuple({"configurable": {}})
    seconds: Any
    for seconds in (-1, "10", None, float("nan"), True):
        with pytest.raises(ConfigError, check=coded("invalid_wait")):
            LangGraphSaver("memory:", wait_seconds=seconds)
    store = FileStore(tmp_path, CLOCK)
    put(LangGraphSaver(store), "t", x=1)
    folder = tmp_path / next(store.heads()).run_id
    for one_run in (f"files:{folder}", RunFolder(folder, CLOCK)):
        with pytest.raises(ConfigError, check=coded("not_a_store")):
            LangGraphSaver(one_run)


def test_langgraph_saver_waits_while_another_writes_and_says_where_it_did_in_vain(tmp_path: Path) -> None:
    class Leaving(SystemClock):
        """The other one leaves while it is waited for."""

        def wait(self, event: threading.Event, seconds: float) -> bool:
            journal.close()
            return super().wait(event, seconds)

    impatient, patient = (
        LangGraphSaver(f"files:{tmp_path}", wait_seconds=seconds, clock=Leaving()) for seconds in (0, 60)
    )
    first = put(impatient, "busy", x=1)
    store = FileStore(tmp_path, CLOCK)
    journal = store.open(next(store.heads()).run_id)
    with pytest.raises(RunLocked, check=coded("run_locked", thread="busy")) as caught:
        put(impatient, "busy", first, x=2)
    assert "thread_id" in caught.value.hint
    put(impatient, "free", x=1)
    put(patient, "busy", first, x=2)
    assert len(list(impatient.list(thread("busy")))) == 2


def test_langgraph_saver_stores_no_settings_that_may_be_secrets(tmp_path: Path) -> None:
    saver = LangGraphSaver(f"files:{tmp_path}")
    key = "sk-ant-api03-not-a-real-key-0123456789"
    config = thread("t", openai_api_key="hunter-2", note=key, user="ann")
    saver.put(config, empty_checkpoint(), {"source": "loop"}, {})
    found = saver.get_tuple(thread("t"))
    assert found is not None
    assert dict(found.metadata) == {"source": "loop", "user": "ann"}
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"hunter-2" not in stored
    assert key.encode() not in stored


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


def test_langgraph_saver_without_its_extra_says_how_to_install_it() -> None:
    code = """
import json, sys
sys.modules["langgraph"] = None
import pipeline
try:
    pipeline.LangGraphSaver
except pipeline.ConfigError as error:
    print(json.dumps([error.message, error.hint]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    message, hint = json.loads(done.stdout)
    assert "not installed" in message
    assert hint == how_to_install("langgraph")
