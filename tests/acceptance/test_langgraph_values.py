"""What nodes of LangGraph graphs may write: it comes back as it was, from every kind of serializer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from pipeline import LangGraphSaver
from tests.documents import ROOT

MB = 1 << 20
CONFIG: Any = {"configurable": {"thread_id": "one"}}


class Order(BaseModel):
    """What pydantic users keep."""

    due: datetime
    price: Decimal


class Holder(TypedDict):
    """One channel for any value."""

    value: Any


#: Short values, which stand in the records, and long ones, which do not.
VALUES: dict[str, Any] = {
    "pydantic": [Order(due=datetime(2026, 1, 9, tzinfo=UTC), price=Decimal("1.10"))],
    "numbers": [2**63 - 1, -(2**63), 1e308, float("inf"), 0.1, True, None, {1, 2}],
    "text": "é\0😀\u2028" * 3,
    "bytes": bytes(range(256)) * 20,
    "five megabytes": os.urandom(5 * MB),
}


def graph(saver: Any, value: Any) -> Any:
    made = StateGraph(Holder).add_node("a", lambda state: {"value": value})
    made.add_node("b", lambda state: {"value": interrupt("as it is?") and state["value"]})
    return made.add_edge(START, "a").add_edge("a", "b").add_edge("b", END).compile(checkpointer=saver)


def kept(saver: Any, value: Any, again: Any = None) -> list[Any]:
    """A value as a graph keeps it, as it is seen while it waits, and as it comes back."""
    graph(saver, value).invoke({"value": value}, CONFIG)
    reopened = graph(again or saver, value)
    waiting = reopened.get_state(CONFIG).values
    return [waiting, reopened.invoke(Command(resume=True), CONFIG), len(list(reopened.get_state_history(CONFIG)))]


@pytest.mark.parametrize("name", VALUES)
def test_value_comes_back_as_it_does_from_the_saver_in_memory(name: str, tmp_path: Path) -> None:
    url, value = f"files:{tmp_path}", VALUES[name]
    found = kept(LangGraphSaver(url), value, LangGraphSaver(url))
    assert found == kept(InMemorySaver(), value)
    assert found[0]["value"] == value


class Cipher:
    """Turns every byte over; who reads the store sees no plain text."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "turned", bytes(byte ^ 0xFF for byte in plaintext)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        assert ciphername == "turned"
        return bytes(byte ^ 0xFF for byte in ciphertext)


@pytest.mark.parametrize("length", [5, 5000])
def test_value_of_an_encrypting_serializer_stands_nowhere_in_the_clear(length: int, tmp_path: Path) -> None:
    value = "attack at dawn " * length
    serde = EncryptedSerializer(Cipher(), JsonPlusSerializer())
    url = f"files:{tmp_path}"
    found = kept(LangGraphSaver(url, serde=serde), value, LangGraphSaver(url, serde=serde))
    assert found[1] == {"value": value}
    texts = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert all(b"attack" not in text for text in texts)
    # Whoever has not the serializer gets no value, and no other error than the serializer's own.
    with pytest.raises(Exception, match=r"(?i)turned|unknown|unsupported|serializ"):
        LangGraphSaver(url).get_tuple({"configurable": {"thread_id": "one", "checkpoint_ns": ""}})


STRICT = """
import json, sys, warnings
warnings.simplefilter("error")
from langgraph.checkpoint.serde import _msgpack
assert _msgpack.STRICT_MSGPACK_ENABLED
from pipeline import LangGraphSaver
from typing import TypedDict
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel

class Listed(BaseModel):
    name: str

class Holder(TypedDict):
    value: Listed

made = StateGraph(Holder).add_node("a", lambda state: {"value": Listed(name=state["value"].name + "!")})
graph = made.add_edge(START, "a").add_edge("a", END).compile(checkpointer=LangGraphSaver(sys.argv[1]))
config = {"configurable": {"thread_id": "one"}}
graph.invoke({"value": Listed(name="tea")}, config)
found = graph.get_state(config).values["value"]
print(json.dumps([type(found).__name__, found.name]))
"""


def test_graph_of_strict_msgpack_gets_what_its_own_state_names(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STRICT, f"files:{tmp_path}"], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "LANGGRAPH_STRICT_MSGPACK": "true"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == ["Listed", "tea!"]


WRITER = """
import sys
from langgraph.checkpoint.base import empty_checkpoint
from pipeline import LangGraphSaver
saver = LangGraphSaver(sys.argv[1])
for number in range(12):
    config = {"configurable": {"thread_id": "shared", "checkpoint_ns": ""}}
    made = saver.put(config, empty_checkpoint(), {"source": "loop", "step": number}, {})
    saver.put_writes(made, [("channel", "x" * 3000)], "task")
"""


def test_two_processes_that_write_to_one_thread_at_once_lose_nothing(tmp_path: Path) -> None:
    url = f"files:{tmp_path}"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, url], stderr=subprocess.PIPE, text=True,
                         env={**os.environ, "PYTHONPATH": str(ROOT)})
        for _ in range(2)
    ]  # fmt: skip
    ends = [(each.communicate(timeout=300)[1], each.returncode) for each in writers]
    assert ends == [("", 0)] * 2
    found = list(LangGraphSaver(url).list({"configurable": {"thread_id": "shared"}}))
    assert sorted(each.metadata["step"] for each in found) == sorted([*range(12)] * 2)
    assert all(each.pending_writes == [("task", "channel", "x" * 3000)] for each in found)
