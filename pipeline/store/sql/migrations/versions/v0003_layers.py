"""The table of seeds/003: checkpoints of layered runs, filled from the records that are there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from pipeline.store.sql.layers import post
from pipeline.store.sql.link import Link
from pipeline.store.sql.rows import pages

revision = "0003"
down_revision = "0002"

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_JSON = sa.Text().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    """Make and fill the table."""
    op.create_table(
        "workflow_checkpoints",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("timestamp", sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite"), nullable=False),
        sa.Column("layer_index", sa.Integer(), nullable=False),
        # Values above 32 KiB stand out of line: {"$blob": hash}, in `blobs`.
        sa.Column("state", _JSON, nullable=False),
        sa.Column("dag_structure", _JSON, nullable=False),
        sa.Column("execution_config", _JSON, nullable=False),
        # The record that it was entered from.
        sa.Column("journal", _BIG, nullable=False),
        sa.Column("seq", _BIG, nullable=False),
    )
    op.create_index("workflow_checkpoints_newest", "workflow_checkpoints", ["workflow_id", sa.text("timestamp DESC")])
    op.create_index("workflow_checkpoints_journal", "workflow_checkpoints", ["journal", "seq"])
    link = Link(op.get_bind().connection, op.get_bind().dialect.name == "sqlite")
    for (journal,) in link.rows("SELECT journal FROM journals"):
        for lines in pages(link, journal):
            post(link, journal, lines)
