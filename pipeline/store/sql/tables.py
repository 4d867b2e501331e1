"""The tables of a database: made where there are none, told apart from older and newer ones, brought up to date."""

from __future__ import annotations

import re

from pipeline.errors import SchemaTooNew, StoreError, WriteFailed
from pipeline.store.sql.connections import Database, Link, queries, statements

#: The version of the tables that this program makes, and the one before, which it brings up to date.
VERSION, BEFORE = "0006", "0005"
#: How this program numbers them, also later ones.
_OURS = re.compile("[0-9]{4}")
#: Tables of the version before whose rows are moved.
_OLD = ("journals", "leases", "records", "blobs", "slices", "kept", "charges")


class Tables:
    """The tables of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._checked = False

    def ready(self, create: bool) -> bool:
        """Return whether the tables are there, in the version that this program knows; made first if `create`.

        Raises:
            SchemaTooNew, StoreError: They have another version.
        """
        if self._checked:
            return True
        if not create and not self._database.exists:
            return False
        found = self._database.ask(_version)
        if not found:
            if not create:
                return False
            self.upgrade()
        else:
            self._check(found)
        self._checked = True
        return True

    def upgrade(self) -> tuple[str, str]:
        """Make the tables, or bring them up to date, in one transaction; the versions before and after.

        Raises:
            SchemaTooNew: They are newer than this program.
            WriteFailed: The database refused; nothing was changed.
        """

        def change(link: Link) -> str:
            if link.dialect == "postgresql":
                # Others that make tables are waited for; a file is locked by any transaction.
                link.execute("SELECT pg_advisory_xact_lock(7202)")
            before = _version(link)
            if before not in ("", BEFORE, VERSION):
                self._check(before)
            if before == BEFORE:
                _from_before(link)
            elif not before:
                _make(link)
            return before

        try:
            before = self._database.write(change)
        except WriteFailed as error:
            if error.code == "name_taken":
                error.hint = self._database.own_place
            raise
        self._checked = True
        return before, VERSION

    def _check(self, found: str) -> None:
        """Refuse tables of another version.

        Raises:
            SchemaTooNew: A newer program made them.
            StoreError: Another program did. Or an older one did, and `store upgrade` was not run.
        """
        url = self._database.address.url
        if found == VERSION:
            return
        if not _OURS.fullmatch(found):
            raise StoreError(
                f"The tables of {url} are another program's: their version is {found[:40]!r}.",
                hint=self._database.own_place,
                code="foreign_tables",
            )
        if found > VERSION:
            raise SchemaTooNew(
                f"The tables of {url} have version {found}; this program knows {VERSION}.",
                hint="Upgrade this program, then try again.",
            )
        hint = f"Stop what runs there, then: store upgrade --store '{url}'"
        if found < BEFORE:
            hint = f"An earlier release of this program brings them to version {BEFORE} first: store upgrade"
        raise StoreError(
            f"The tables of {url} have version {found}; this program needs {VERSION}.", hint=hint, code="schema_too_old"
        )


def _version(link: Link) -> str:
    """Return the version of the tables that are there; "" if there are none, "none" where none is entered."""
    names = [name for (name,) in link.rows("version")]
    if not names:
        return ""
    column = "version" if names[0] == "pipeline_meta" else "version_num"
    row = link.execute(f"SELECT {column} FROM {names[0]}").fetchone()
    return str(row[0]) if row else "none"


def _make(link: Link) -> None:
    for sql in statements("schema.sql", link.dialect).values():
        link.execute(sql)
    link.execute(f"INSERT INTO pipeline_meta VALUES ('{VERSION}')")


def _from_before(link: Link) -> None:
    """Bring the tables of the version before along: nothing that was recorded is read otherwise than before."""
    for view in ("runs", "costs_by_day"):
        link.execute(f"DROP VIEW {view}")
    for table in ("workflow_checkpoints", "kept_costs", "alembic_version"):
        link.execute(f"DROP TABLE {table}")
    for table in _OLD:
        link.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    for index in ("journals_newest", "journals_run_id"):
        link.execute(f"DROP INDEX {index}")
    _make(link)
    for name in queries(link.dialect):
        if name.startswith(("move_", "forget_")):
            link.run(name)
    for table in _OLD:
        link.execute(f"DROP TABLE old_{table}")
