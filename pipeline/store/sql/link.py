"""A connection to a database as it is lent: queries and statements, their values and rows. Knows no tables."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.store.sql import file as lite
from pipeline.store.sql.guard import Guard


@functools.lru_cache(1024)
def _percent(sql: str) -> str:
    return sql.replace("?", "%s")


class Link:
    """A connection that is lent; SQL is written with `?` for each value."""

    def __init__(self, connection: Any, lite: bool, guard: Guard | None = None) -> None:
        self.connection = connection
        self.lite = lite
        self._guard = guard
        # A commit on a good disk takes little more time than what is laid over the driver.
        self._driver = connection.dbapi_connection
        #: When it was given back, in monotonic seconds.
        self.used = 0.0

    @property
    def broken(self) -> bool:
        """Whether it is of no more use: the other side is gone, or it was good for one look."""
        return bool(lite.frozen(self._driver) if self.lite else self._driver.closed)

    def outdated(self, file: Path) -> bool:
        """Whether what was read may be of different moments."""
        seen = lite.frozen(self._driver)
        return seen is not None and not lite.is_as(file, seen)

    def rows(self, sql: str, *values: Any) -> Sequence[Any]:
        """All rows of a query."""
        return self._run(sql, values).fetchall()  # type: ignore[no-any-return]

    def row(self, sql: str, *values: Any) -> Any:
        """The first row of a query; None if there is none."""
        return self._run(sql, values).fetchone()

    def run(self, sql: str, *values: Any) -> int:
        """Execute; how many rows were changed."""
        return self._run(sql, values).rowcount  # type: ignore[no-any-return]

    def run_many(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Execute once for each row of values."""
        if self._guard is None:
            self._driver.cursor().executemany(sql if self.lite else _percent(sql), rows)
            return
        with self._guard.over(self._driver):
            self._driver.cursor().executemany(_percent(sql), rows)

    def for_update(self) -> str:
        """What a query ends with whose rows nobody else may change before this transaction ends."""
        return "" if self.lite else " FOR UPDATE"

    def _run(self, sql: str, values: tuple[Any, ...]) -> Any:
        if self._guard is None:
            return self._driver.execute(sql if self.lite else _percent(sql), values)
        with self._guard.over(self._driver):
            return self._driver.execute(_percent(sql), values)
