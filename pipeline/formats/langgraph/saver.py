"""LangGraphSaver: LangGraph's checkpoint saver over any store; a thread is a run, owned only while it is written to.

Serialization is LangGraph's own; what is stored is read with the serializer that the saver is given.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

from pipeline.clock import Clock, SystemClock
from pipeline.errors import ConfigError
from pipeline.extras import not_installed
from pipeline.formats.langgraph.thread import KeptCheckpoint, Key, Stored, Thread, Write, writes_document
from pipeline.formats.langgraph.threads import Addition, Threads, thread_ids
from pipeline.formats.packer import Gathered
from pipeline.records.redaction import holds_key
from pipeline.store.base import Store
from pipeline.store.run_folder import RunFolder
from pipeline.store.url import open_store

try:
    from langgraph.checkpoint.base import (
        WRITES_IDX_MAP,
        BaseCheckpointSaver,
        CheckpointTuple,
        get_serializable_checkpoint_metadata,
    )
except ImportError as error:
    raise not_installed("langgraph", "LangGraphSaver") from error

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
    from langgraph.checkpoint.serde.base import SerializerProtocol

WAIT_SECONDS = 10.0
KEEP_LATEST, DELETE = "keep_latest", "delete"
_STORES = 'Give the URL of a store, such as "sqlite:threads.db", or what open_store returned.'
#: Settings of a graph named so are not stored with its checkpoints, as they may be secrets.
_PRIVATE = re.compile(r"(?i)key|token|secret|passw|credential|auth")


def _in_thread(method: Callable[..., Any]) -> Any:
    """Return the async twin of a method, which runs it in a thread; its type is that of the base class."""

    @wraps(method)
    async def twin(*args: Any, **more: Any) -> Any:
        return await asyncio.to_thread(method, *args, **more)

    return twin


class LangGraphSaver(BaseCheckpointSaver[str]):
    """Checkpoints of LangGraph graphs in a store; what a call returned from survives kill -9 and power loss."""

    def __init__(
        self,
        store: Store | str,
        *,
        serde: SerializerProtocol | None = None,
        wait_seconds: float = WAIT_SECONDS,
        clock: Clock | None = None,
    ) -> None:
        """Use a store, or the one at a URL.

        Args:
            serde: LangGraph's serializer; None: its default one.
            wait_seconds: How long a call waits while another process writes to its thread.

        Raises:
            ConfigError: The URL names no store that threads can be kept in, or an argument makes no sense.
        """
        if isinstance(wait_seconds, bool) or not isinstance(wait_seconds, (int, float)) or not wait_seconds >= 0:
            raise ConfigError(
                f"LangGraphSaver(wait_seconds=…) is {wait_seconds!r}; it is seconds, 0 or more.", code="invalid_wait"
            )
        super().__init__(serde=serde)
        self._clock = clock or SystemClock()
        self._threads = Threads(_opened(store, self._clock), self._clock, wait_seconds)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that a config names, else the newest of its thread and namespace, or None.

        Raises:
            CheckpointCorrupt: A part of it is missing or damaged.
        """
        return self._found(*_place(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield the checkpoints of a thread (None: of all), newest first; `filter` compares metadata."""
        wanted = config["configurable"] if config else {}
        below = before["configurable"].get("checkpoint_id") if before else None
        names = [_place(config)[0]] if config else thread_ids(self._threads.store)
        left = limit
        for thread_id in names:
            for key in self._keys(thread_id, wanted.get("checkpoint_ns"), wanted.get("checkpoint_id"), below):
                if left is not None and left <= 0:
                    return
                found = self._found(thread_id, key, filter)
                if found is not None:
                    left = None if left is None else left - 1
                    yield found

    async def alist(self, *args: Any, **more: Any) -> AsyncIterator[CheckpointTuple]:
        found = self.list(*args, **more)
        while (each := await asyncio.to_thread(next, found, None)) is not None:
            yield each

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keep a checkpoint, durable on return, and return the config that names it.

        Raises:
            RunLocked: Another process has been writing to the thread for too long.
            WriteFailed: The disk refused.
        """
        thread_id, parent = _place(config)
        key = Key(parent.namespace, checkpoint["id"])
        rest: dict[str, Any] = {**checkpoint}
        values, versions = rest.pop("channel_values"), checkpoint["channel_versions"]

        def make(thread: Thread | None) -> Addition:
            blobs, stored = Gathered(), {}
            for name, version in versions.items():
                if name in values:
                    known = thread.known if thread is not None and name not in new_versions else {}
                    same = known.get((key.namespace, name, version))
                    stored[name] = (version, same or self._stored(values[name], blobs))
            described = _metadata(config, metadata)
            kept = KeptCheckpoint(
                key, parent.id or None, self._stored(rest, blobs), self._stored(described, blobs), stored
            )
            return Addition([kept.document()], blobs)

        self._threads.add(thread_id, make)
        return _config(thread_id, key)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep what a task wrote after a checkpoint, durable on return; raises as `put`."""
        thread_id, key = _place(config)

        def make(thread: Thread | None) -> Addition | None:
            there = thread.writes.get(key, {}) if thread is not None else {}
            blobs, made = Gathered(), []
            for place, (channel, value) in enumerate(writes):
                index = WRITES_IDX_MAP.get(channel, place)
                if index < 0 or (task_id, index) not in there:
                    made.append(Write(task_id, task_path, index, channel, self._stored(value, blobs)))
            return Addition([writes_document(key, task_id, task_path, made)], blobs) if made else None

        self._threads.add(thread_id, make)

    def delete_thread(self, thread_id: str) -> None:
        """Remove a thread and all that is stored of it; raises RunLocked as `put`."""
        self._threads.delete(str(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints that these runs of graphs made, in all threads; raises as `put`."""
        gone = set(map(str, run_ids))

        def choose(thread: Thread) -> Sequence[Key]:
            found = thread.checkpoints.items()
            return [key for key, kept in found if str(self._described(thread, kept).get("run_id")) not in gone]

        for thread_id in thread_ids(self._threads.store) if gone else ():
            self._threads.keep(thread_id, choose)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Make a thread that holds all that another does.

        Raises:
            RunExists: There is such a thread already.
        """
        self._threads.copy(str(source_thread_id), str(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = KEEP_LATEST) -> None:
        """Leave the newest checkpoint of each namespace (keep_latest), or nothing (delete), and free the rest.

        What a channel of deltas needs to be put together stays too.

        Raises:
            ConfigError: There is no such strategy.
            RunLocked, WriteFailed: As `put`.
        """
        if strategy not in (KEEP_LATEST, DELETE):
            raise ConfigError(
                f"Unknown prune strategy {strategy!r}.", code="unknown_strategy", hint=f"Use {KEEP_LATEST} or {DELETE}."
            )
        for thread_id in map(str, thread_ids):
            if strategy == DELETE:
                self._threads.delete(thread_id)
            else:
                self._threads.keep(thread_id, lambda thread: thread.newest(partial(self._deltas, thread)))

    aget_tuple = _in_thread(get_tuple)
    aput = _in_thread(put)
    aput_writes = _in_thread(put_writes)
    adelete_thread = _in_thread(delete_thread)
    adelete_for_runs = _in_thread(delete_for_runs)
    acopy_thread = _in_thread(copy_thread)
    aprune = _in_thread(prune)

    def get_next_version(self, current: Any, channel: None) -> str:
        """Return the version after one: greater than all before it, and another on each branch of a thread."""
        number = int(str(current).partition(".")[0]) if current is not None else 0
        return f"{number + 1:032}.{self._clock.new_id()}"

    def _keys(self, thread_id: str, namespace: str | None, wanted: str | None, below: str | None) -> Sequence[Key]:
        """Return checkpoints of a thread, newest first."""
        with self._threads.reading(thread_id) as thread:
            found = thread.newest_first(namespace) if thread is not None else []
            return [
                kept.key for kept in found if wanted in (None, "", kept.key.id) and (not below or kept.key.id < below)
            ]

    def _found(self, thread_id: str, key: Key, filter: dict[str, Any] | None = None) -> CheckpointTuple | None:
        """Return the checkpoint (id "": the newest of its namespace), if it is there and its metadata fits."""
        with self._threads.reading(thread_id) as thread:
            kept = thread.find(key) if thread is not None else None
            if thread is None or kept is None:
                return None
            if filter:
                described = self._described(thread, kept)
                if any(described.get(name) != value for name, value in filter.items()):
                    return None
            loaded = partial(self._loaded, thread)
            checkpoint: Checkpoint = loaded(kept.checkpoint)
            checkpoint["channel_values"] = {name: loaded(value) for name, (_, value) in kept.values.items()}
            return CheckpointTuple(
                config=_config(thread_id, kept.key),
                checkpoint=checkpoint,
                metadata=loaded(kept.metadata),
                parent_config=_config(thread_id, Key(key.namespace, kept.parent)) if kept.parent else None,
                pending_writes=[(each.task, each.channel, loaded(each.value)) for each in thread.writes_of(kept.key)],
            )

    def _stored(self, value: Any, blobs: Gathered) -> Stored:
        return Stored.of(self.serde.dumps_typed(value), blobs)

    def _loaded(self, thread: Thread, stored: Stored) -> Any:
        return self.serde.loads_typed(stored.typed(partial(self._threads.store.get_blob, thread.run_id)))

    def _described(self, thread: Thread, kept: KeptCheckpoint) -> dict[str, Any]:
        found: dict[str, Any] = self._loaded(thread, kept.metadata)
        return found

    def _deltas(self, thread: Thread, kept: KeptCheckpoint) -> Collection[str]:
        """Return the channels of a checkpoint that are stored as what was written since an earlier one."""
        return self._described(thread, kept).get("counters_since_delta_snapshot") or ()


def _opened(store: Store | str, clock: Clock) -> Store:
    opened = _at(store, clock) if isinstance(store, str) else store
    if not callable(getattr(opened, "create_named", None)):
        raise ConfigError(
            f"LangGraphSaver(store) is of type {type(store).__name__}, which is not a store.",
            code="not_a_store",
            hint=_STORES,
        )
    if isinstance(opened, RunFolder):
        raise ConfigError(
            f"LangGraphSaver(store) is {opened.url!r}, the folder of one run; threads need a store of many.",
            code="not_a_store", hint=_STORES,
        )  # fmt: skip
    return opened


def _at(url: str, clock: Clock) -> Store:
    try:
        # A graph's calls are not made by us: no disk is held back for them.
        return open_store(url, clock, concurrency=0)
    except ConfigError as error:
        # The message names an option of the command line.
        words = error.message.replace("--store is", "LangGraphSaver(store) is", 1)
        error.args = (words.replace("--store ", "LangGraphSaver(store): ", 1),)
        raise


def _place(config: RunnableConfig) -> tuple[str, Key]:
    """Return the thread that a config names, and the checkpoint in it (id "": the newest one)."""
    named = config.get("configurable") or {}
    if named.get("thread_id") is None:
        raise ConfigError(
            "The config names no thread.",
            code="no_thread_id",
            hint='Give the graph {"configurable": {"thread_id": "…"}}.',
        )
    return str(named["thread_id"]), Key(named.get("checkpoint_ns") or "", named.get("checkpoint_id") or "")


def _config(thread_id: str, key: Key) -> RunnableConfig:
    names = {"thread_id": thread_id, "checkpoint_ns": key.namespace, "checkpoint_id": key.id}
    return {"configurable": names}


def _metadata(config: RunnableConfig, metadata: CheckpointMetadata) -> dict[str, Any]:
    """Return what is stored beside a checkpoint: LangGraph's words and the settings of the graph, but no secrets."""
    merged: dict[str, Any] = {**get_serializable_checkpoint_metadata(config, metadata)}
    return {
        name: value
        for name, value in merged.items()
        if name in metadata or not (_PRIVATE.search(name) or holds_key(value))
    }
