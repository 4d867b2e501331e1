"""Our books against the provider's reports: what differs, and what explains it."""

from __future__ import annotations

from datetime import date
from decimal import Decimal as D
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.cost.reconciliation import (
    ELSEWHERE,
    LOST,
    MIDNIGHT,
    NOT_YET,
    OPEN,
    OTHERS,
    PRICE,
    PRIORITY,
    REASONS,
    ROUNDING,
    SEARCHES,
    TOLERANCE,
    UNEXPLAINED,
    UNPRICED,
    Bounds,
    Compared,
    Reconciliation,
    Reported,
    most,
    reconcile,
    same_name,
    shares,
)
from pipeline.cost.report import NOWHERE, Posting
from pipeline.records.run import Spend

SONNET = "claude-sonnet-5-5"
TODAY = date(2026, 1, 20)


def ours(usd: str, tokens: int = 1000, day: int = 10, model: str = SONNET, **more: Any) -> Posting:
    spend = Spend(calls=1, usd=D(usd), tokens={"input": tokens} if tokens else {}, **more)
    return Posting(NOWHERE, "s", "l", model, f"2026-01-{day:02d}", "used", "", spend)


def theirs(usd: str, tokens: int = 1000, day: int = 10, model: str = SONNET, **more: Any) -> list[Reported]:
    """Money and tokens, as the two reports have them."""
    when = f"2026-01-{day:02d}"
    return [Reported(when, model, D(usd), **more), Reported(when, model, tokens={"input": tokens}, **more)]


def compare(postings: list[Posting], reported: list[Reported], first: int = 10, last: int = 12) -> Reconciliation:
    since, until = date(2026, 1, first), date(2026, 1, last)
    return reconcile(postings, reported, since=since, until=until, today=TODAY)


def only(made: Reconciliation) -> Compared:
    (line,) = made.lines
    return line


def told(line: Compared) -> list[tuple[str, D]]:
    return [(reason.kind, reason.usd) for reason in line.reasons]


def test_equal_books_have_nothing_to_explain_but_parts_of_a_cent() -> None:
    made = compare([ours("1.25"), ours("0.75")], theirs("2.00", 2000))
    assert (only(made).difference, told(only(made)), made.by_reason()) == (D(0), [], {})
    assert (made.total.known, made.total.theirs) == (D(2), D(2))
    assert told(only(compare([ours("1.2345")], theirs("1.23")))) == [(ROUNDING, D("-0.0045"))]
    for name in ("anthropic/claude-sonnet-5-5", "claude-sonnet-5-5-20260901", "CLAUDE-sonnet-5-5"):
        assert same_name(name) == SONNET
        assert told(only(compare([ours("1", model=name)], theirs("1")))) == []


def test_calls_that_are_not_exactly_known_explain_as_much_as_they_may_have_cost() -> None:
    lone = Posting(NOWHERE, "s", "l", SONNET, "2026-01-10", "open", "", Spend(calls=1, high=D("0.50")))
    assert told(only(compare([ours("1"), lone], theirs("1.30", 1300)))) == [(OPEN, D("0.30"))]
    more = only(compare([ours("1"), lone], theirs("2.00", 2000)))
    assert told(more) == [(OPEN, D("0.50")), (OTHERS, D("0.50"))]
    assert more.to_json()["recorded_at_most_usd"] == 1.5

    cut = Posting(NOWHERE, "s", "l", SONNET, "2026-01-10", "wasted", "", Spend(calls=1, low=D("0.2"), high=D("0.9")))
    assert told(only(compare([cut], theirs("0.4", 400)))) == [(OPEN, D("0.2"))], "its lower end is spent"


PRIORITY_USAGE = Reported("2026-01-10", SONNET, tokens={"input": 1000}, tier="priority")


@pytest.mark.parametrize(
    ("recorded", "reported", "explained", "words"),
    [
        ([ours("0", unpriced=2)], theirs("3"), (UNPRICED, D(3)), "2 of our calls"),
        ([ours("1")], theirs("1.5", 1500), (OTHERS, D("0.5")), "500 tokens that no run here requested"),
        ([], theirs("4", 4000, model="claude-opus-5-5"), (OTHERS, D(4)), "4,000 tokens"),
        ([ours("2")], theirs("1.7"), (PRICE, D("-0.3")), "at 0.850 of the recorded price"),
        ([ours("2")], theirs("2.2"), (PRICE, D("0.2")), "at 1.100"),
        ([ours("2", 2000, 9), ours("1")], theirs("3", 3000), (MIDNIGHT, D(2)), "begun on 2026-01-09, before the range"),
        ([ours("1", day=12)], theirs("1", day=13), (MIDNIGHT, D(-1)), "billed on 2026-01-13"),
        ([ours("1", day=20)], [], (NOT_YET, D(-1)), "not over"),
        ([ours("1", day=19)], [], (ELSEWHERE, D(-1)), "1,000 tokens"),
        ([ours("1")], theirs("0.25", 250), (ELSEWHERE, D("-0.75")), "750 tokens"),
        ([ours("1")], [PRIORITY_USAGE], (PRIORITY, D(-1)), "1,000 tokens of the priority tier"),
    ],
)
def test_difference_is_explained_by_what_the_tokens_say(
    recorded: list[Posting], reported: list[Reported], explained: tuple[str, D], words: str
) -> None:
    line = only(compare(recorded, reported, last=20 if not reported else 12))
    assert told(line) == [explained]
    assert words in line.reasons[0].text
    assert (line.to_json()["recorded_at_most_usd"] is None) == (explained[0] == UNPRICED)


def test_calls_around_midnight_are_billed_on_the_next_day() -> None:
    made = compare([ours("2", 2000, 10), ours("1", 1000, 11)], [*theirs("1.5", 1500, 10), *theirs("1.5", 1500, 11)])
    before, after = made.lines
    assert (told(before), told(after)) == ([(MIDNIGHT, D("-0.5"))], [(MIDNIGHT, D("0.5"))])
    assert after.reasons[0].text == "begun on 2026-01-10"
    assert made.by_reason() == {MIDNIGHT: D(0)}


def test_no_more_is_moved_over_midnight_than_the_day_before_lacks() -> None:
    made = compare([ours("2", 2000, 10), ours("1", 1000, 11)], [*theirs("1.5", 1500, 10), *theirs("2.5", 2500, 11)])
    before, after = made.lines
    assert told(before) == [(MIDNIGHT, D("-0.5"))]
    assert told(after) == [(MIDNIGHT, D("0.5")), (OTHERS, D("1.0"))]
    made = compare([ours("3", 3000, 10), ours("1", 1000, 11)], [*theirs("1.5", 1500, 10), *theirs("1.5", 1500, 11)])
    assert [told(line) for line in made.lines] == [
        [(MIDNIGHT, D("-0.5")), (ELSEWHERE, D("-1.0"))], [(MIDNIGHT, D("0.5"))],
    ]  # fmt: skip


def test_searches_stand_in_a_line_of_their_own() -> None:
    posting = ours("1.02", usd_by_kind={"web_search": D("0.02"), "input": D(1)})
    made = compare([posting], [*theirs("1"), Reported("2026-01-10", "", D("0.02"), kind="web_search")])
    assert [(line.model, line.difference) for line in made.lines] == [(SEARCHES, D(0)), (SONNET, D(0))]
    assert made.total.known == D("1.02")


def test_costs_of_no_model_are_named_by_their_kind_or_as_lost() -> None:
    (line,) = compare([], [Reported("2026-01-10", "", D(1), kind="code_execution")]).lines
    assert (line.model, told(line)) == ("(code execution)", [(OTHERS, D(1))])
    (line,) = compare([ours("1", model="")], []).lines
    assert (line.model, told(line)) == (LOST, [(UNEXPLAINED, D(-1))])


def test_days_outside_the_range_and_models_that_cost_nothing_are_not_shown() -> None:
    made = compare([ours("1", day=9), ours("1", day=13)], [*theirs("5", day=9), *theirs("5", day=13)])
    assert (made.lines, made.total.theirs) == ([], D(0))
    assert compare([ours("0", 0, model="offline")], []).lines == []


AMOUNTS = st.integers(0, 300).map(lambda cents: D(cents) / 100)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(AMOUNTS, AMOUNTS, AMOUNTS, st.integers(0, 2)), min_size=5, max_size=5))
def test_every_difference_is_explained_to_the_last_part_of_a_cent(days: list[tuple[D, D, D, int]]) -> None:
    postings, reported = [], []
    for number, (known, more, billed, unpriced) in enumerate(days):
        postings.append(ours(str(known), int(known * 100), 9 + number, unpriced=unpriced, high=more))
        reported += theirs(str(billed), int(billed * 100), 9 + number)
    made = compare(postings, reported)
    for line in made.lines:
        assert abs(line.left) < TOLERANCE
        assert {reason.kind for reason in line.reasons} <= set(REASONS)
        assert sum((reason.usd for reason in line.reasons), D(0)) + line.left == line.theirs - line.known
    assert made.total.difference == sum((line.difference for line in made.lines), D(0))


usd = st.decimals(min_value=0, max_value=1000, allow_nan=False, places=6)


@st.composite
def calls(draw: st.DrawFn) -> list[Bounds]:
    def one() -> Bounds:
        low = draw(usd)
        return Bounds(low, draw(st.one_of(st.none(), st.just(low + draw(usd)))), draw(st.integers(0, 10_000)))

    return [one() for _ in range(draw(st.integers(1, 12)))]


@settings(deadline=None, max_examples=50)
@given(calls(), usd)
def test_shares_add_up_and_none_passes_its_bound_unless_all_must(bounds: list[Bounds], amount: D) -> None:
    found = shares(bounds, amount)
    assert sum(found, D(0)) == amount
    assert all(share >= 0 for share in found)
    limit = most(bounds)
    if limit is None or amount <= limit:
        assert all(each.high is None or share <= each.high for each, share in zip(bounds, found, strict=True))
    if amount >= sum((each.low for each in bounds), D(0)):
        assert all(share >= each.low for each, share in zip(bounds, found, strict=True))


def test_shares_go_with_the_width_of_the_bounds_and_then_with_tokens() -> None:
    two = [Bounds(D(0), D(1)), Bounds(D(0), D(3))]
    assert shares(two, D(2)) == [D("0.5"), D("1.5")]
    free = [Bounds(D(0), D(1)), Bounds(D(0), None, 100), Bounds(D(0), None, 300)]
    assert shares(free, D(5)) == [D(1), D(1), D(3)]
    assert sum(shares([Bounds(D(0), D(1))] * 3, D(1)), D(0)) == 1
