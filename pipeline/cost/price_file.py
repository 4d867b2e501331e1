"""A user's own prices (negotiated, or of models the published data lacks), read from a JSON or TOML file.

    [models."claude-mythos-5"]          # exact id; also holds for its dated versions (-20260101)
    input = "10"                        # USD per million tokens; all five are required
    output = "50"
    cache_read = "0.25"
    cache_write_5m = "12.5"
    cache_write_1h = "20"
    web_search = "10"                   # USD per thousand searches; optional
    batch = "0.5"                       # factors on all five; optional, 0.5 and none
    fast = "2"
    [models."claude-mythos-5".long_context]   # optional: prices of every token once the prompt is longer
    above = 100000
    factor = "5"

Prices may be numbers or text; both are read as exact decimals.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from pipeline.cost.rates import BATCH_FACTOR, NoPrice, PriceQuery, Rates, undated
from pipeline.cost.usage import WEB_SEARCH
from pipeline.errors import InvalidValue
from pipeline.files import read_regular
from pipeline.records.charge import TOKEN_KINDS

_OPTIONAL = frozenset({WEB_SEARCH, "batch", "fast", "long_context"})


@dataclass(frozen=True, slots=True)
class _Entry:
    """One model's prices."""

    prices: Mapping[str, Decimal]
    web_search: Decimal | None
    batch: Decimal
    fast: Decimal | None
    #: Prompts longer than this many tokens cost `long_factor` times as much, every token.
    long_above: int | None
    long_factor: Decimal


#: The highest price; sums of lower ones stay exact.
_MOST = 10**9
#: The longest file: one without an end (a device, a pipe) must not fill the memory.
_MOST_BYTES = 1_000_000


class PriceFile:
    """The prices of one file."""

    def __init__(self, path: Path) -> None:
        """Read and check the file.

        Raises:
            InvalidValue: It cannot be read, or a key in it is wrong; names file and key.
        """
        self._where = path.name
        try:
            data = read_regular(path, _MOST_BYTES)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            text = f"The price file {path} cannot be read: {why}."
            raise InvalidValue(text, code="price_file_unreadable") from None
        if len(data) > _MOST_BYTES:
            text = f"The price file {path} is longer than {_MOST_BYTES:,} bytes."
            raise InvalidValue(text, code="price_file_unreadable")
        #: Name and content hash, as recorded with every charge.
        self.source = f"file {path.name} sha256:{hashlib.sha256(data).hexdigest()[:12]}"
        self._entries = self._read(_parse(path, data))

    @property
    def models(self) -> Collection[str]:
        return self._entries

    def has(self, model: str) -> bool:
        return self._entry(model) is not None

    def rates(self, case: PriceQuery) -> Rates:
        """Return the unit prices of a model in the file. Raises as PublishedRates.rates."""
        entry = self._entry(case.model)
        if entry is None:
            raise NoPrice(f"no price for {case.model!r} in {self._where}")
        factor = Decimal(1)
        if entry.long_above is not None and case.prompt > entry.long_above:
            factor *= entry.long_factor
        if case.batch:
            factor *= entry.batch
        elif case.fast:
            if entry.fast is None:
                raise NoPrice(f"no fast price for {case.model!r} in {self._where}")
            factor *= entry.fast
        prices = {kind: price * factor for kind, price in entry.prices.items()}
        if entry.web_search is not None:
            prices[WEB_SEARCH] = entry.web_search
        return Rates(prices, self.source)

    def _entry(self, model: str) -> _Entry | None:
        return self._entries.get(model) or self._entries.get(undated(model))

    def _read(self, document: Any) -> dict[str, _Entry]:
        models = document.get("models") if isinstance(document, Mapping) else None
        if not isinstance(models, Mapping) or not models:
            raise self._wrong("models", 'must be a table of model ids, as in [models."my-model-1"]')
        for key in document:
            if key != "models":
                raise self._wrong(key, "is not known; the file holds one table, models")
        return {str(model).lower(): self._model(f"models.{model}", entry) for model, entry in models.items()}

    def _model(self, key: str, entry: Any) -> _Entry:
        if not isinstance(entry, Mapping):
            raise self._wrong(key, "must be a table of prices")
        for name in entry:
            if name not in TOKEN_KINDS and name not in _OPTIONAL:
                raise self._wrong(
                    f"{key}.{name}", f"is not known; known are {', '.join((*TOKEN_KINDS, *sorted(_OPTIONAL)))}"
                )
        if missing := [name for name in TOKEN_KINDS if name not in entry]:
            others = f", and so are {', '.join(missing[1:])}" if missing[1:] else ""
            raise self._wrong(f"{key}.{missing[0]}", f"is missing{others}")
        batch = self._maybe(key, entry, "batch")
        above, factor = self._long(f"{key}.long_context", entry.get("long_context"))
        return _Entry(
            prices={name: self._decimal(f"{key}.{name}", entry[name]) for name in TOKEN_KINDS},
            web_search=self._maybe(key, entry, WEB_SEARCH),
            batch=BATCH_FACTOR if batch is None else batch,
            fast=self._maybe(key, entry, "fast"),
            long_above=above,
            long_factor=factor,
        )

    def _long(self, key: str, entry: Any) -> tuple[int | None, Decimal]:
        if entry is None:
            return None, Decimal(1)
        if not isinstance(entry, Mapping) or set(entry) != {"above", "factor"}:
            raise self._wrong(key, "must hold above (tokens) and factor")
        above = entry["above"]
        if isinstance(above, bool) or not isinstance(above, int) or above < 0:
            raise self._wrong(f"{key}.above", "must be a whole number of tokens")
        return above, self._decimal(f"{key}.factor", entry["factor"])

    def _maybe(self, key: str, entry: Mapping[str, Any], name: str) -> Decimal | None:
        return self._decimal(f"{key}.{name}", entry[name]) if name in entry else None

    def _decimal(self, key: str, value: Any) -> Decimal:
        try:
            if isinstance(value, bool) or not isinstance(value, (int, str, Decimal)):
                raise InvalidOperation
            number = Decimal(value)
        except InvalidOperation:
            raise self._wrong(key, f"is {value!r}; it must be a price in USD") from None
        if not number.is_finite() or not 0 <= number <= _MOST:
            raise self._wrong(key, f"is {value}; it must be 0 to {_MOST:,}")
        return number

    def _wrong(self, key: str, problem: str) -> InvalidValue:
        text = f"{self._where}: {key} {problem}."
        return InvalidValue(text, code="price_file_invalid", file=self._where, key=key)


def _parse(path: Path, data: bytes) -> Any:
    try:
        text = data.decode("utf-8")
        if path.suffix.lower() == ".toml":
            return tomllib.loads(text, parse_float=Decimal)
        return json.loads(text, parse_float=Decimal, parse_constant=str)
    except (ValueError, RecursionError) as error:
        text = f"The price file {path.name} is not valid: {error}."
        raise InvalidValue(text, code="price_file_invalid", file=path.name) from None
