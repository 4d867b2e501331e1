"""The tables of a database: made where there are none, told apart from older and newer ones, brought up to date."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pipeline.errors import SchemaTooNew, StoreError
from pipeline.store.sql.database import UPGRADING, Database
from pipeline.store.sql.link import Link
from pipeline.store.sql.refusals import own_place

#: The versions of the tables, oldest first; each has a file under migrations/versions.
VERSIONS = ("0001", "0002", "0003", "0004", "0005")
#: How this program numbers them, also later ones.
_OURS = re.compile("[0-9]{4}")
_FOLDER = Path(__file__).with_name("migrations")


def version(link: Link) -> str:
    """The version of the tables that are there; "" if there are none, "none" where nobody has entered it."""
    if link.lite:
        there = link.row("SELECT name FROM sqlite_master WHERE name = 'alembic_version'")
    else:
        there = link.row("SELECT c FROM (SELECT to_regclass('alembic_version') AS c) AS t WHERE c IS NOT NULL")
    if not there:
        return ""
    row = link.row("SELECT version_num FROM alembic_version")
    return row[0] if row else "none"


def check(database: Database, found: str) -> None:
    """Refuse tables of another version.

    Raises:
        SchemaTooNew: A newer program made them.
        StoreError: Another program did. Or an older one did, and `store upgrade` was not run.
    """
    if found == VERSIONS[-1]:
        return
    if not _OURS.fullmatch(found):
        raise StoreError(
            f"The tables of {database.address.url} are another program's: their version is {found[:40]!r}.",
            hint=own_place(database.address),
        )
    if found not in VERSIONS:
        raise SchemaTooNew(
            f"The tables of {database.address.url} have version {found}; this program knows {VERSIONS[-1]}.",
            hint="Upgrade this program, then try again.",
        )
    raise StoreError(
        f"The tables of {database.address.url} have version {found}; this program needs {VERSIONS[-1]}.",
        hint=f"Stop what runs there, then: store upgrade --store '{database.address.url}'",
    )


def upgrade(database: Database, to: str = VERSIONS[-1]) -> tuple[str, str]:
    """Make the tables, or bring them up to date, in one transaction; the versions before and after.

    Raises:
        SchemaTooNew: They are newer than this program.
        WriteFailed: The database refused; nothing was changed.
    """
    with database.write(lock=UPGRADING) as link:
        before = version(link)
        if before and before not in VERSIONS:
            check(database, before)
        if before != to:
            _migrate(database.core(link), to)
    return before, to


def _migrate(connection: Any, to: str) -> None:
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(_FOLDER))

    def steps(revision: Any, _: Any) -> Any:
        return scripts._upgrade_revs(to, revision)

    # A connection that is in use is left to commit to who uses it.
    connection.exec_driver_sql("SELECT 1")
    with EnvironmentContext(Config(), scripts, fn=steps, as_sql=False) as environment:
        # The transaction is the caller's: all versions, or none.
        environment.configure(connection=connection, transactional_ddl=False)
        environment.run_migrations()
