"""What the fields of a JSON document from disk may hold, and which one does not. Pure, and cheap to import.

A check returns "" for a value that fits; else where in it and why, such as `[1].step is no text`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

Check = Callable[[Any], str]
#: More than any count or amount; sums of what is below it stay exact.
MOST = 10**15


def problem(value: Any, check: Check) -> str:
    """Return why a value does not fit, as a clause that names the field; "" if it fits."""
    found = check(value)
    return found.removeprefix(".") if found.startswith(".") else found and f"it{found}"


def text(value: Any) -> str:
    """Return any text."""
    return "" if isinstance(value, str) else " is not text"


def name(value: Any) -> str:
    """Return a text that is not empty."""
    return "" if isinstance(value, str) and value else " is empty or not text"


def maybe_text(value: Any) -> str:
    """Return a text or null."""
    return "" if value is None or isinstance(value, str) else " is not text"


def number(value: Any) -> str:
    """Return a number that is neither negative nor beyond measure."""
    fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MOST
    return "" if fits else " is out of range"


def count(value: Any) -> str:
    """Return a whole number that is not negative."""
    return "" if type(value) is int and 0 <= value <= MOST else " is not a count"


def dollars(value: Any) -> str:
    """Return an amount as a number or as decimal text; a saving may be negative."""
    try:
        usd = Decimal(str(value)) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
    except ArithmeticError:
        usd = None
    return "" if usd is not None and usd.is_finite() and abs(usd) <= MOST else " is not an amount of dollars"


def mapping(value: Any) -> str:
    """Return a JSON object."""
    return "" if isinstance(value, Mapping) else " is not an object"


def optional(check: Check) -> Check:
    """Return the check, of a value that may be left out, null or empty."""
    return lambda value: check(value) if value else ""


def items(check: Check) -> Check:
    """Return a list whose items pass the check."""

    def fits(value: Any) -> str:
        if not isinstance(value, list):
            return " is not a list"
        for place, item in enumerate(value):
            if found := check(item):
                return f"[{place}]{found}"
        return ""

    return fits


def table(check: Check) -> Check:
    """Return an object of any keys whose values pass the check."""

    def fits(value: Any) -> str:
        if not isinstance(value, Mapping):
            return " is not an object"
        return next((f".{key}{found}" for key, item in value.items() if (found := check(item))), "")

    return fits


def fields(needed: Sequence[str] = (), /, **checks: Check) -> Check:
    """Return an object whose known fields pass their checks; only the needed ones must be there."""

    def fits(value: Any) -> str:
        if not isinstance(value, Mapping):
            return " is not an object"
        for name, check in checks.items():
            if name in value:
                if found := check(value[name]):
                    return f".{name}{found}"
            elif name in needed:
                return f".{name} is missing"
        return ""

    return fits


def fields_of(names: Sequence[str], check: Check) -> dict[str, Check]:
    """Return the same check for several fields."""
    return dict.fromkeys(names, check)


#: A row of sums of charges (records.documents.spend_rows); of removed runs also without `calls`.
_SUMS = {
    **fields_of(("calls", "unpriced", "unbounded"), optional(count)),
    **fields_of(("usd", "low", "high", "saved_cache", "saved_batch"), optional(dollars)),
    **fields_of(("tokens", "kind_calls"), optional(table(count))),
    "usd_by_kind": optional(table(dollars)),
}
SPEND = items(fields(("calls",), **_SUMS))
#: What the account keeps of a run that was removed (store.retention.run_sums).
REMOVED = fields(
    **_SUMS,
    claim=optional(items(lambda _: "")),
    imported_usd=optional(dollars),
    days=optional(table(fields(**_SUMS))),
    spend=SPEND,
)
_STEP = fields(
    ("step",),
    step=text,
    **fields_of(("status", "error"), maybe_text),
    **fields_of(("outputs", "artifacts"), optional(mapping)),
    metrics=optional(fields(cost_usd=optional(number))),
)
#: What readers take from a head document without asking what it is; whatever else it holds is shown as it stands.
HEAD: Mapping[str, Check] = {
    **fields_of(
        ("run_id", "pipeline", "status", "status_detail", "started_at", "updated_at", "course_id", "lost",
         "last_completed_step", "next_step", "error", "resume_command"), maybe_text),
    **fields_of(("total_cost_usd", "possibly_spent_usd", "imported_cost"), optional(number)),
    **fields_of(("total_tokens", "unpriced_calls", "unbounded_calls", "tasks_out", "checkpoints", "seq",
                 "journal_bytes", "open_questions"), optional(count)),
    **fields_of(("nodes", "claim"), optional(items(text))),
    **fields_of(("identity", "parent"), optional(mapping)),
    "completed_steps": optional(items(_STEP)),
    "current_step": optional(_STEP),
    "spend": optional(SPEND),
}  # fmt: skip
