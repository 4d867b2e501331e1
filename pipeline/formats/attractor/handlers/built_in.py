"""The handlers that every graph has, as a registry of its own for each pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pipeline.dot import kinds
from pipeline.formats.attractor.children import CHILD_EXIT, CHILD_START
from pipeline.formats.attractor.handlers.codergen import codergen
from pipeline.formats.attractor.handlers.conditional import conditional
from pipeline.formats.attractor.handlers.ends import leave, start
from pipeline.formats.attractor.handlers.fan import fan_in, parallel
from pipeline.formats.attractor.handlers.human import ask_person
from pipeline.formats.attractor.handlers.registry import Handler, Registry, Visit
from pipeline.formats.attractor.handlers.supervise import supervise
from pipeline.formats.attractor.handlers.tool import tool
from pipeline.formats.attractor.outcome import NodeOutcome

_RUN: Mapping[str, tuple[Callable[[Visit], NodeOutcome], str]] = {
    kinds.START: (start, "pure"),
    kinds.EXIT: (leave, "pure"),
    kinds.CODERGEN: (codergen, "read"),
    kinds.CONDITIONAL: (conditional, "pure"),
    kinds.HUMAN: (ask_person, "human"),
    kinds.TOOL: (tool, "external"),
    kinds.PARALLEL: (parallel, "pure"),
    kinds.FAN_IN: (fan_in, "read"),
    kinds.LOOP: (supervise, "pure"),
}


def registry() -> Registry:
    """A fresh registry with all that is built in."""
    made = Registry(
        Handler(kind.type, _RUN[kind.type][0], kind.purpose, kind.shape, _RUN[kind.type][1], own=False)
        for kind in kinds.KINDS
    )
    made.add(Handler(CHILD_START, start, "Where a child pipeline begins.", "", "pure", own=False))
    made.add(Handler(CHILD_EXIT, leave, "Where a child pipeline ends.", "", "pure", own=False))
    return made
