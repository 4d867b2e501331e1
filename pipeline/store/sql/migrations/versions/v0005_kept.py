"""Sums of deleted runs in what people query; owners that are gone own nothing; charges on the day that calls left."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

from pipeline.store.sql.charges import date_calls
from pipeline.store.sql.database import LITE_NOW, POSTGRES_NOW
from pipeline.store.sql.kept import enter
from pipeline.store.sql.link import Link
from pipeline.store.sql.rows import pages

revision = "0005"
down_revision = "0004"

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_USD = sa.Numeric().with_variant(sa.Text(), "sqlite")
_RUNS = """CREATE VIEW runs AS SELECT j.run_id, j.pipeline, j.subject, j.level, j.status, j.status_detail,
  {started} AS started_at, {updated} AS updated_at, {usd} AS total_cost_usd,
  (SELECT MAX(r.seq) FROM records r WHERE r.journal = j.journal) AS records,
  CASE WHEN l.holder <> '' AND abs({now} - l.beat_at) <= 30 THEN 1 ELSE 0 END AS owned
  FROM journals j JOIN leases l ON l.journal = j.journal WHERE j.path = ''"""
# A run that is there counts by its charges; one that is gone by what was kept of it, which may have come from
# another store that its charges never were in.
_GONE = "SELECT run_id FROM kept_costs WHERE run_id NOT IN (SELECT run FROM journals WHERE path = '')"
_COSTS = """CREATE VIEW costs_by_day AS SELECT day, model, CAST(SUM(calls) AS {big}) AS calls, {low} AS low_usd,
  {high} AS high_usd, CAST(SUM(open_calls) AS {big}) AS open_calls, CAST(SUM(unpriced_calls) AS {big}) AS unpriced_calls
  FROM (SELECT day, model, 1 AS calls, low, COALESCE(high, low) AS high,
    CASE WHEN state = 'open' THEN 1 ELSE 0 END AS open_calls,
    CASE WHEN high IS NULL THEN 1 ELSE 0 END AS unpriced_calls FROM charges WHERE run_id NOT IN ({gone})
    UNION ALL SELECT day, model, calls, low, high, open_calls, unpriced_calls FROM kept_costs WHERE run_id IN ({gone})
  ) AS every GROUP BY day, model"""
_TIME = "CASE WHEN j.{0} ~ '^[0-9]{{4}}-[0-9][0-9]-[0-9][0-9]T[0-9:.]+Z$' THEN CAST(j.{0} AS TIMESTAMPTZ) END"
# No question marks: they stand for values.
_NUMBER = "CASE WHEN j.total_cost_usd ~ '^[0-9]+([.][0-9]+){0,1}(e-{0,1}[0-9]+){0,1}$'"


def upgrade() -> None:
    """Make and fill the table, date the charges, make the views anew."""
    op.create_table(
        "kept_costs",
        sa.Column("run_id", _NAME, nullable=False, index=True),
        # NULL: of a day that was not kept.
        sa.Column("day", sa.Date().with_variant(sa.Text(), "sqlite")),
        sa.Column("model", sa.Text(), nullable=False),
        *(sa.Column(name, _BIG, nullable=False) for name in ("calls", "open_calls", "unpriced_calls")),
        # USD, at least and at most.
        *(sa.Column(name, _USD, nullable=False) for name in ("low", "high")),
    )
    link = Link(op.get_bind().connection, op.get_bind().dialect.name == "sqlite")
    for run, sums in link.rows("SELECT run_id, sums FROM kept"):
        enter(link, run, json.loads(sums))
    for (journal,) in link.rows("SELECT journal FROM journals"):
        for lines in pages(link, journal):
            date_calls(link, journal, lines)
    for view in ("runs", "costs_by_day"):
        op.execute(f"DROP VIEW {view}")
    for view in _lite() if link.lite else _postgres():
        link.run(view)


def _lite() -> tuple[str, str]:
    runs = _RUNS.format(
        started="j.started_at", updated="j.updated_at", usd="printf('%.6f', j.total_cost_usd)", now=LITE_NOW
    )
    low, high = "printf('%.6f', SUM(low))", "printf('%.6f', SUM(high))"
    return runs, _COSTS.format(low=low, high=high, gone=_GONE, big="INTEGER")


def _postgres() -> tuple[str, str]:
    usd = f"{_NUMBER} THEN ROUND(CAST(j.total_cost_usd AS NUMERIC), 6) END"
    times = {"started": _TIME.format("started_at"), "updated": _TIME.format("updated_at")}
    runs = _RUNS.format(**times, usd=usd, now=POSTGRES_NOW)
    return runs, _COSTS.format(low="SUM(low)", high="SUM(high)", gone=_GONE, big="BIGINT")
