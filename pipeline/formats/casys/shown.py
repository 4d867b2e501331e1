"""What a checkpoint carries for people who query a database: its state, DAG and settings. Nothing is read from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.formats.casys.dag import Dag
from pipeline.formats.casys.packing import Gathered, Packer, packed_text, packed_value
from pipeline.formats.casys.views import state_of
from pipeline.records.run import RunState
from pipeline.records.values import encode_value
from pipeline.store.base import Journal


class Shown:
    """The checkpoints of one go, as rows show them. Large values are read once."""

    def __init__(self, dag: Dag, config: Mapping[str, Any]) -> None:
        self._dag = dag
        self._config = config
        self._packer = Packer()
        self._read: dict[str, bytes] = {}
        #: Values that were handed out to be stored.
        self._given: set[str] = set()

    def document(self, run: RunState, journal: Journal, checkpoint: str) -> tuple[dict[str, Any], list[bytes]]:
        """{"state", "dag", "config"} as checkpoints that are saved by hand have them, and what is to be stored with it.

        Stored are values above 32 KiB, each once.

        Raises:
            CheckpointCorrupt: A result is missing or damaged.
        """
        blobs = Gathered()

        def get(blob: str) -> bytes:
            if blob not in self._read:
                self._read[blob] = journal.get_blob(blob)
            return self._read[blob]

        document = {
            "state": self._packer.packed(vars(state_of(run, self._dag, get, checkpoint)), blobs),
            "dag": packed_text(encode_value(self._dag.to_json(), "dag"), blobs.put),
            "config": packed_value(dict(self._config), "config", blobs.put),
        }
        new = [data for blob, data in blobs.items() if blob not in self._given]
        self._given.update(blobs)
        return document, new
