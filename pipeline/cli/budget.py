"""`budget`: limits on what the runs of a store spend, over windows of time and by label."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal

import click

from pipeline.app.stores import open_account
from pipeline.cli.options import F, common_options, here, own_option, store_words_here
from pipeline.cli.run_options import Usd
from pipeline.cli.text import PROGRAM, table, tell
from pipeline.clock import SystemClock
from pipeline.errors import ConfigError
from pipeline.records.budgets import PERIODS, Limit, LimitStanding, labels_text
from pipeline.records.charge import dollars, in_full

_RUNNING = "It holds from the next call on, also for runs that are under way."


@click.group("budget")
def budget() -> None:
    """Limit what the runs of a store spend, per day, week, month or in total, for all or by label.

    A run is labelled with --label KEY=VALUE. Windows are UTC days, ISO weeks (from Monday) and calendar months.
    """


def _which(command: str) -> Callable[[F], F]:
    """Return what adds the options that name a limit."""

    def add(function: F) -> F:
        per = own_option(f"budget-{command}", "--per", type=click.Choice(PERIODS), required=True,
                         help="The period it holds for.")  # fmt: skip
        label = own_option(f"budget-{command}", "--label", "labels", multiple=True, metavar="KEY=VALUE",
                           help="Runs with this label; repeat for runs with all of them.  [default: all runs]",
                           )  # fmt: skip
        return label(per(function))

    return add


@budget.command("set")
@_which("set")
@own_option("budget-set", "--usd", type=Usd(none=False), required=True, metavar="USD", help="The limit.")
@common_options
def set_limit(labels: tuple[str, ...], per: str, usd: Decimal, store: str | None, as_json: bool) -> None:
    """Set a limit, or change its amount. What was spent in its window before counts."""
    account, limit = open_account(store), Limit(labels_text(labels), per, usd)
    before = next((each for each in account.limits() if each.key == limit.key), None)
    account.set_limit(limit)
    now = SystemClock().now()
    standing = next(each for each in account.standings(now) if each.limit.key == limit.key)
    was = f" (it was {in_full(before.usd)})" if before else ""
    said = f"Set: {limit.words}{was}. {dollars(standing.left, 2)} is left."
    tell([standing.to_json()], [said, _RUNNING], as_json=as_json)


@budget.command("list")
@common_options
def list_limits(store: str | None, as_json: bool) -> None:
    """List the limits: what is spent, reserved and left now."""
    from pipeline.app.settlement import standings_now

    standings = standings_now(store)
    tell((each.to_json() for each in standings), _lines(standings), as_json=as_json)


@budget.command("remove")
@_which("remove")
@common_options
def remove_limit(labels: tuple[str, ...], per: str, store: str | None, as_json: bool) -> None:
    """Remove a limit."""
    key = labels_text(labels)
    if not open_account(store).remove_limit(key, per):
        text = f"There is no limit per {per} for {key or 'all runs'}."
        raise ConfigError(text, code="limit_not_found",
                          hint=f"`{PROGRAM} budget list{store_words_here()}` shows the limits there are.")  # fmt: skip
    said = {"label": key or None, "per": per, "removed": True}
    tell([said], [f"Removed the limit per {per} for {key or 'all runs'}."], as_json=as_json)


def _lines(standings: Sequence[LimitStanding]) -> Iterator[str]:
    if not standings:
        yield f"No limits are set{here()}."
        yield f"`{PROGRAM} budget set --label team=maths --per month --usd 200{store_words_here()}` sets one."
        return
    rows = [
        [each.limit.labels or "all runs", each.limit.per, each.window.first or "-", dollars(each.limit.usd, 2),
         dollars(each.tally.spent, 2), dollars(each.tally.reserved, 2), dollars(each.left, 2)]
        for each in standings
    ]  # fmt: skip
    head = ["Label", "Per", "Since", "Limit", "Spent", "Reserved", "Left"]
    yield table(head, rows, right=head[3:])
    if any(each.tally.reserved for each in standings):
        yield "Reserved: room that runs under way hold for their calls, and calls of dead ones whose cost is not known."
