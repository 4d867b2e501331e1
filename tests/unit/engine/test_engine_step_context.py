"""What a step's body is offered: a small, stable set of members."""

from __future__ import annotations

from pipeline import StepContext
from pipeline.engine.step import VisitPlace

#: Members that the documentation shows.
DOCUMENTED = {
    "ask", "ask_person", "context", "load", "map", "memory", "note", "options", "outputs", "params", "pin", "prompt",
    "save", "services", "settings", "stop", "task",
}  # fmt: skip


def test_step_context_has_few_public_members_and_all_that_are_documented() -> None:
    public = {name for name in dir(StepContext) if not name.startswith("_")}
    assert len(public) <= 24
    assert public >= DOCUMENTED


def test_what_only_handlers_of_graphs_need_is_beside_the_step_context() -> None:
    place = {name for name in dir(VisitPlace) if not name.startswith("_")}
    assert place.isdisjoint(dir(StepContext))
