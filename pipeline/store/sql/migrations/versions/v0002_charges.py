"""Charges, filled from the records that are there, and what people query: runs, costs_by_day."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from pipeline.store.sql.charges import post
from pipeline.store.sql.link import Link
from pipeline.store.sql.rows import pages

revision = "0002"
down_revision = "0001"

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
# SQLite has no exact decimals: they are text there.
_USD = sa.Numeric().with_variant(sa.Text(), "sqlite")
_RUNS = """CREATE VIEW runs AS SELECT j.run_id, j.pipeline, j.subject, j.level, j.status, j.status_detail, j.started_at,
  j.updated_at, {usd} AS total_cost_usd, l.last_seq AS records, CASE WHEN l.holder = '' THEN 0 ELSE 1 END AS owned
  FROM journals j JOIN leases l ON l.journal = j.journal WHERE j.path = ''"""
_COSTS = """CREATE VIEW costs_by_day AS SELECT day, model, COUNT(*) AS calls, {low} AS low_usd, {high} AS high_usd,
  SUM(CASE WHEN state = 'open' THEN 1 ELSE 0 END) AS open_calls,
  SUM(CASE WHEN high IS NULL THEN 1 ELSE 0 END) AS unpriced_calls FROM charges GROUP BY day, model"""


def upgrade() -> None:
    """Make and fill the table, make the views."""
    op.create_table(
        "charges",
        sa.Column("journal", _BIG, primary_key=True, autoincrement=False),
        # seq of its call_started.
        sa.Column("call", _BIG, primary_key=True, autoincrement=False),
        sa.Column("run_id", sa.Text(), nullable=False, index=True),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite"), nullable=False),
        sa.Column("day", sa.Date().with_variant(sa.Text(), "sqlite"), nullable=False, index=True),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        # open, exact, interval or unpriced.
        sa.Column("state", sa.Text(), nullable=False),
        # USD; high is NULL where no upper bound is known.
        sa.Column("low", _USD, nullable=False),
        sa.Column("high", _USD),
    )
    link = Link(op.get_bind().connection, op.get_bind().dialect.name == "sqlite")
    for journal, run in link.rows("SELECT journal, run FROM journals"):
        for lines in pages(link, journal):
            post(link, journal, run, lines)
    if link.lite:
        link.run(_RUNS.format(usd="j.total_cost_usd"))
        link.run(_COSTS.format(low="printf('%.6f', SUM(low))", high="printf('%.6f', SUM(high))"))
    else:
        link.run(_RUNS.format(usd="CAST(j.total_cost_usd AS NUMERIC)"))
        link.run(_COSTS.format(low="SUM(low)", high="SUM(high)"))
