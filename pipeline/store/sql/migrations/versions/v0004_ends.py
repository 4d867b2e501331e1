"""Where a journal ends is said by its records alone: an append then writes to one place instead of two."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"

_RUNS = """CREATE VIEW runs AS SELECT j.run_id, j.pipeline, j.subject, j.level, j.status, j.status_detail, j.started_at,
  j.updated_at, {usd} AS total_cost_usd, (SELECT MAX(r.seq) FROM records r WHERE r.journal = j.journal) AS records,
  CASE WHEN l.holder = '' THEN 0 ELSE 1 END AS owned
  FROM journals j JOIN leases l ON l.journal = j.journal WHERE j.path = ''"""


def upgrade() -> None:
    """Take the two columns out of the leases, and the view that read them."""
    op.execute("DROP VIEW runs")
    op.drop_column("leases", "last_seq")
    op.drop_column("leases", "size")
    usd = "j.total_cost_usd" if op.get_bind().dialect.name == "sqlite" else "CAST(j.total_cost_usd AS NUMERIC)"
    op.execute(_RUNS.format(usd=usd))
