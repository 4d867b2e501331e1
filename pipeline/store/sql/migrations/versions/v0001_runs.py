"""Runs: journals, who owns them, their records and values, and the account of the store."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
#: Byte order, whatever the server's language: names are sorted and compared by it.
_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the tables."""
    _runs()
    _records()
    _account()


def _runs() -> None:
    op.create_table(
        "journals",
        sa.Column("journal", _BIG, primary_key=True, autoincrement=True),
        # A run, or a sub-journal: ID[/PATH]; and its two halves.
        sa.Column("run", _NAME, nullable=False, unique=True),
        sa.Column("run_id", _NAME, nullable=False),
        sa.Column("path", _NAME, nullable=False),
        # What newest first goes by: the moment in an id, then its length, then the id.
        sa.Column("stem", _NAME, nullable=False),
        sa.Column("width", sa.Integer(), nullable=False),
        sa.Column("claim", sa.Text(), nullable=False),
        sa.Column("head", sa.LargeBinary()),
        # What people ask for, out of the head.
        *(sa.Column(name, sa.Text()) for name in ("pipeline", "subject", "level", "status", "status_detail")),
        *(sa.Column(name, sa.Text()) for name in ("started_at", "updated_at", "total_cost_usd")),
        sqlite_autoincrement=True,
    )
    whole = sa.text("path = ''")
    op.create_index(
        "journals_newest", "journals", ["stem", "width", "run_id"], postgresql_where=whole, sqlite_where=whole
    )
    op.create_index("journals_run_id", "journals", ["run_id"])
    op.create_table(
        "leases",
        sa.Column("journal", _BIG, primary_key=True, autoincrement=False),
        # Raised with each owner.
        sa.Column("epoch", _BIG, nullable=False),
        # Who owns it, as JSON; "" if nobody does.
        sa.Column("holder", sa.Text(), nullable=False),
        # When the owner last said that it lives: seconds since 1970 by the database's clock.
        sa.Column("beat_at", sa.Double(), nullable=False),
        sa.Column("last_seq", _BIG, nullable=False),
        sa.Column("size", _BIG, nullable=False),
    )


def _records() -> None:
    op.create_table(
        "records",
        sa.Column("journal", _BIG, primary_key=True, autoincrement=False),
        sa.Column("seq", _BIG, primary_key=True, autoincrement=False),
        # As it would stand in journal.jsonl; bytes, so that nothing in it is changed.
        sa.Column("line", sa.LargeBinary(), nullable=False),
        # One tree to write to instead of two.
        sqlite_with_rowid=False,
    )
    op.create_table(
        "blobs",
        sa.Column("run_id", _NAME, primary_key=True),
        sa.Column("hash", _NAME, primary_key=True),
        # Compressed (zlib).
        sa.Column("data", sa.LargeBinary(), nullable=False),
    )


def _account() -> None:
    op.create_table(
        "slices",
        sa.Column("slice", sa.Text(), primary_key=True),
        sa.Column("day", sa.Text(), nullable=False, index=True),
        sa.Column("owner", sa.Text(), nullable=False),
        # Exact decimal text.
        sa.Column("usd", sa.Text(), nullable=False),
        sa.Column("settled", sa.Integer(), nullable=False),
    )
    op.create_table(
        "kept",
        sa.Column("run_id", sa.Text(), primary_key=True),
        sa.Column("sums", sa.Text(), nullable=False),
    )
