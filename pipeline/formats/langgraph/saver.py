"""LangGraphSaver: LangGraph's checkpoint saver over any store; a thread is a run, owned only while it is written to.

Serialization is LangGraph's own; what is stored is read with the serializer that the saver is given.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pipeline.clock import Clock, SystemClock
from pipeline.errors import ConfigError
from pipeline.extras import not_installed
from pipeline.formats.langgraph import choosing, finding
from pipeline.formats.langgraph.shelf import Shelf
from pipeline.formats.langgraph.stored import Gathered
from pipeline.formats.langgraph.thread import Kept, Key, Thread, Write, writes_document
from pipeline.formats.langgraph.writing import Addition
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
            raise ConfigError(f"LangGraphSaver(wait_seconds=…) is {wait_seconds!r}; it is seconds, 0 or more.")
        super().__init__(serde=serde)
        self._clock = clock or SystemClock()
        self._shelf = Shelf(_opened(store, self._clock), self._clock, wait_seconds)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a config names, else the newest of its thread and namespace; None: there is none.

        Raises:
            CheckpointCorrupt: A part of it is missing or damaged.
        """
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """The checkpoints of a thread (None: of all), newest first; `filter` compares metadata."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (each := await asyncio.to_thread(next, found, None)) is not None:
            yield each

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keep a checkpoint, durable on return; the config that names it.

        Raises:
            RunLocked: Another process has been writing to the thread for too long.
            WriteFailed: The disk refused.
        """
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep what a task wrote after a checkpoint, durable on return; raises as `aput`."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Remove a thread and all that is stored of it; raises RunLocked as `aput`."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints that these runs of graphs made, in all threads; raises as `aput`."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Make a thread that holds all that another does.

        Raises:
            RunExists: There is such a thread already.
        """
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = KEEP_LATEST) -> None:
        """Leave the newest checkpoint of each namespace (keep_latest), or nothing (delete), and free the rest.

        What a channel of deltas needs to be put together stays too.

        Raises:
            ConfigError: There is no such strategy.
            RunLocked, WriteFailed: As `aput`.
        """
        await asyncio.to_thread(self.prune, thread_ids, strategy=strategy)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self._found(*_place(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        wanted = config["configurable"] if config else {}
        below = before["configurable"].get("checkpoint_id") if before else None
        names = iter([_place(config)[0]]) if config else finding.threads(self._shelf.store)
        left = limit
        for thread_id in names:
            for key in self._keys(thread_id, wanted.get("checkpoint_ns"), wanted.get("checkpoint_id"), below):
                if left is not None and left <= 0:
                    return
                found = self._found(thread_id, key, filter)
                if found is not None:
                    left = None if left is None else left - 1
                    yield found

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        thread_id, parent = _place(config)
        key = Key(parent.namespace, checkpoint["id"])
        rest: dict[str, Any] = {**checkpoint}
        values, versions = rest.pop("channel_values"), checkpoint["channel_versions"]

        def make(thread: Thread | None) -> Addition:
            gathered, stored = Gathered(), {}
            for name, version in versions.items():
                if name in values:
                    same = (
                        None if thread is None or name in new_versions else thread.known.get((*key[:1], name, version))
                    )
                    stored[name] = (version, same or gathered.put(self.serde.dumps_typed(values[name])))
            kept = Kept(
                key, parent.id or None, gathered.put(self.serde.dumps_typed(rest)),
                gathered.put(self.serde.dumps_typed(_metadata(config, metadata))), stored,
            )  # fmt: skip
            return Addition([kept.document()], gathered.blobs)

        self._shelf.add(thread_id, make)
        return _config(thread_id, key)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        thread_id, key = _place(config)

        def make(thread: Thread | None) -> Addition | None:
            there = thread.writes.get(key, {}) if thread is not None else {}
            gathered, made = Gathered(), []
            for place, (channel, value) in enumerate(writes):
                index = WRITES_IDX_MAP.get(channel, place)
                if index < 0 or (task_id, index) not in there:
                    made.append(Write(task_id, task_path, index, channel, gathered.put(self.serde.dumps_typed(value))))
            return Addition([writes_document(key, task_id, task_path, made)], gathered.blobs) if made else None

        self._shelf.add(thread_id, make)

    def delete_thread(self, thread_id: str) -> None:
        self._shelf.delete(str(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        gone = set(map(str, run_ids))
        if not gone:
            return

        def choose(thread: Thread) -> Sequence[Key]:
            found = thread.checkpoints.items()
            return [key for key, kept in found if str(self._metadata(thread, kept).get("run_id")) not in gone]

        for thread_id in [*finding.threads(self._shelf.store)]:
            self._shelf.keep(thread_id, choose)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self._shelf.copy(str(source_thread_id), str(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = KEEP_LATEST) -> None:
        if strategy not in (KEEP_LATEST, DELETE):
            raise ConfigError(f"prune knows no strategy {strategy!r}.", hint=f"There are {KEEP_LATEST} and {DELETE}.")
        for thread_id in map(str, thread_ids):
            if strategy == DELETE:
                self._shelf.delete(thread_id)
            else:
                self._shelf.keep(thread_id, lambda thread: choosing.newest(thread, partial(self._deltas, thread)))

    def _deltas(self, thread: Thread, kept: Kept) -> Collection[str]:
        """The channels of a checkpoint that are stored as what was written since an earlier one."""
        return self._metadata(thread, kept).get("counters_since_delta_snapshot") or ()

    def get_next_version(self, current: Any, channel: None) -> str:
        """The version after one: greater than all before it, and another on each branch of a thread."""
        number = int(str(current).partition(".")[0]) if current is not None else 0
        return f"{number + 1:032}.{self._clock.new_id()}"

    def _keys(self, thread_id: str, namespace: str | None, wanted: str | None, below: str | None) -> Sequence[Key]:
        """Checkpoints of a thread, newest first."""
        with self._shelf.reading(thread_id) as thread:
            found = thread.newest_first(namespace) if thread is not None else []
            return [kept.key for kept in found
                    if wanted in (None, "", kept.key.id) and (not below or kept.key.id < below)]  # fmt: skip

    def _found(self, thread_id: str, key: Key, filter: dict[str, Any] | None = None) -> CheckpointTuple | None:
        """The checkpoint (id "": the newest of its namespace), if it is there and its metadata says all this."""
        with self._shelf.reading(thread_id) as thread:
            if thread is None:
                return None
            kept = thread.checkpoints.get(key) if key.id else thread.latest(key.namespace)
            if kept is None:
                return None
            if filter:
                metadata = self._metadata(thread, kept)
                if any(metadata.get(name) != value for name, value in filter.items()):
                    return None
            return self._tuple(thread_id, thread, kept)

    def _tuple(self, thread_id: str, thread: Thread, kept: Kept) -> CheckpointTuple:
        def loaded(stored: Any) -> Any:
            return self.serde.loads_typed(stored.typed(lambda blob: self._shelf.store.get_blob(thread.run_id, blob)))

        checkpoint: Checkpoint = loaded(kept.checkpoint)
        checkpoint["channel_values"] = {name: loaded(value) for name, (_, value) in kept.values.items()}
        namespace = kept.key.namespace
        return CheckpointTuple(
            config=_config(thread_id, kept.key),
            checkpoint=checkpoint,
            metadata=loaded(kept.metadata),
            parent_config=_config(thread_id, Key(namespace, kept.parent)) if kept.parent else None,
            pending_writes=[(each.task, each.channel, loaded(each.value)) for each in thread.writes_of(kept.key)],
        )

    def _metadata(self, thread: Thread, kept: Kept) -> dict[str, Any]:
        typed = kept.metadata.typed(lambda blob: self._shelf.store.get_blob(thread.run_id, blob))
        found: dict[str, Any] = self.serde.loads_typed(typed)
        return found


def _opened(store: Store | str, clock: Clock) -> Store:
    """The store that threads are kept in."""
    opened = _at(store, clock) if isinstance(store, str) else store
    if not callable(getattr(opened, "create_named", None)):
        raise ConfigError(f"LangGraphSaver(store) is of type {type(store).__name__}, which is no store.", hint=_STORES)
    if isinstance(opened, RunFolder):
        raise ConfigError(
            f"LangGraphSaver(store) is {opened.url!r}, the folder of one run; threads need a store of many.",
            hint=_STORES,
        )
    return opened


def _at(url: str, clock: Clock) -> Store:
    try:
        # A graph's calls are not made by us: no disk is held back for them.
        return open_store(url, clock, concurrency=0)
    except ConfigError as error:
        # Its words are for who typed an option.
        words = error.message.replace("--store is", "LangGraphSaver(store) is", 1)
        error.args = (words.replace("--store ", "LangGraphSaver(store): ", 1),)
        raise


def _place(config: RunnableConfig) -> tuple[str, Key]:
    """The thread that a config means, and the checkpoint in it (id "": the newest one)."""
    named = config.get("configurable") or {}
    if named.get("thread_id") is None:
        raise ConfigError("The config names no thread.", hint='Give the graph {"configurable": {"thread_id": "…"}}.')
    return str(named["thread_id"]), Key(named.get("checkpoint_ns") or "", named.get("checkpoint_id") or "")


def _config(thread_id: str, key: Key) -> RunnableConfig:
    names = {"thread_id": thread_id, "checkpoint_ns": key.namespace, "checkpoint_id": key.id}
    return {"configurable": names}


def _metadata(config: RunnableConfig, metadata: CheckpointMetadata) -> dict[str, Any]:
    """What is stored beside a checkpoint: LangGraph's words and the settings of the graph, but no secrets."""
    merged: dict[str, Any] = {**get_serializable_checkpoint_metadata(config, metadata)}
    return {
        name: value
        for name, value in merged.items()
        if name in metadata or not (_PRIVATE.search(name) or holds_key(value))
    }
