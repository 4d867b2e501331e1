"""Which run holds a thread: its name is made of the thread's id, so no other run is looked at. Never writes."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pipeline.errors import ConfigError, RunNotFound, StoreError
from pipeline.records.codec import decode_line
from pipeline.records.kinds import RunStarted
from pipeline.records.run import RunState
from pipeline.store.base import Claim, Store
from pipeline.store.view import first_problem

#: The pipeline of the runs that hold threads, and the source of their documents.
PIPELINE = SOURCE = "langgraph"
#: Such names stand behind all that begin with a date: a thread is never the newest run, and displaces none.
_PREFIX, _OTHER = "0thread-", "-b"
#: Bytes of the hash: two ids with the same name are refused, and nobody can bring them about by chance.
_HASH_BYTES = 15


class Home(NamedTuple):
    """A run that holds a thread."""

    run: str
    #: How many runs have held the thread up to this one: each pruning makes one more.
    generation: int


def names_of(thread_id: str) -> tuple[str, str]:
    """The names that the run of a thread may have: the first, and the one that pruning moves it to and back from."""
    digest = hashlib.sha256(thread_id.encode("utf-8", "surrogatepass")).digest()[:_HASH_BYTES]
    name = _PREFIX + base64.b32encode(digest).decode("ascii").lower()
    return name, name + _OTHER


def claim_of(thread_id: str, generation: int) -> Claim:
    """What the run of a thread says that it is of; each generation is its own, so no clean-up takes one."""
    return Claim(PIPELINE, thread_id, str(generation), "thread")


def homes(store: Store, thread_id: str) -> list[Home]:
    """The runs of a thread, the one that counts first; a second one is left where a process died while it pruned.

    Raises:
        CheckpointCorrupt, SchemaTooNew: One of them cannot be read.
        StoreError: One of them is not the thread's.
    """
    every = (found(store, run, thread_id) for run in names_of(thread_id))
    return sorted((home for home in every if home is not None), key=lambda home: home.generation, reverse=True)


def check_is_no_thread(state: RunState) -> None:
    """Refuse to go on here with a run that holds a thread.

    Raises:
        ConfigError: It does.
    """
    if state.pipeline == PIPELINE:
        config = json.dumps({"configurable": {"thread_id": state.params.get("subject")}}, ensure_ascii=False)
        raise ConfigError(
            f"Run {state.run_id} holds a LangGraph thread, and its graph is not part of this program.",
            hint=f"Go on in your own program: graph.invoke(None, {config})",
        )


def threads(store: Store) -> Iterator[str]:
    """The ids of all threads, the one that was begun last first."""
    begun: dict[str, str] = {}
    for head in store.heads(lambda document: document.get("pipeline") == PIPELINE):
        claim = head.document.get("claim")
        # A fork says the same as the run that it was made of, and is no thread.
        if isinstance(claim, Sequence) and len(claim) > 1 and head.run_id in names_of(str(claim[1])):
            begun[str(claim[1])] = _when(head.document)
    return iter(sorted(begun, key=begun.__getitem__, reverse=True))


def _when(document: Mapping[str, Any]) -> str:
    return str(document.get("started_at") or "")


def found(store: Store, run: str, thread_id: str) -> Home | None:
    """The run of that name, which is one of a thread's; None: there is none. Raises as `homes`."""
    try:
        line = next(store.read(run), None)
    except RunNotFound:
        return None
    return home_of(line, run, thread_id)


def home_of(line: bytes | None, run: str, thread_id: str) -> Home:
    """What the first line of a run says of the thread that it holds.

    Raises:
        CheckpointCorrupt, SchemaTooNew: It cannot be read.
        StoreError: It holds something else.
    """
    if problem := first_problem(line):
        problem.args = (f"Run {run}, which holds thread {thread_id!r}, cannot be read. {problem.message}",)
        raise problem
    fact = decode_line(line or b"").fact
    claim = fact.claim if isinstance(fact, RunStarted) and fact.pipeline == PIPELINE else None
    if claim is None or len(claim) < 3 or claim[1] != thread_id:
        raise StoreError(
            f"Run {run} is not of thread {thread_id!r}, though it has its name.",
            hint="Use another thread_id, or a store of its own for threads.",
            run=run,
        )
    return Home(run, int(claim[2]))
