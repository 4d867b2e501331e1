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

    def document(self, run: RunState, journal: Journal, checkpoint: str, blobs: Gathered) -> dict[str, Any]:
        """{"state", "dag", "config"} as checkpoints that are saved by hand have them.

        Args:
            blobs: Takes each value above 32 KiB.

        Raises:
            CheckpointCorrupt: A result is missing or damaged.
        """

        def get(blob: str) -> bytes:
            if blob not in self._read:
                self._read[blob] = journal.get_blob(blob)
            return self._read[blob]

        return {
            "state": self._packer.packed(vars(state_of(run, self._dag, get, checkpoint)), blobs),
            "dag": packed_text(encode_value(self._dag.to_json(), "dag"), blobs.put),
            "config": packed_value(dict(self._config), "config", blobs.put),
        }
