"""The head document as a file, checkpoint.json: a top-level key a line, sealed with a CRC. A view, never the truth."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pipeline.files import parse_json
from pipeline.records.structure import HEAD as CHECKS

HEAD = "checkpoint.json"

_encode = json.JSONEncoder(separators=(", ", ": "), allow_nan=False).encode
_SEAL = b',\n  "crc": "'
_TAIL = len(_SEAL) + 8 + len(b'"\n}\n')
_MISSING = object()


def head_bytes(document: Mapping[str, Any]) -> bytes:
    """Encode a document as people read it and as `HeadText` scans it: each top-level key begins a line.

    Raises:
        ValueError: It holds NaN or an infinity.
        TypeError: It holds something that is not JSON.
    """
    rows = [f"  {_encode(key)}: {_rows(value)}" for key, value in document.items() if key != "crc"]
    body = ("{\n" + ",\n".join(rows)).encode("ascii")
    return body + _SEAL + b'%08x"\n}\n' % zlib.crc32(body)


def _rows(value: Any) -> str:
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join("    " + _encode(item) for item in value) + "\n  ]"
    return _encode(value)


def sealed(raw: bytes) -> bool:
    """Return whether these bytes are a head as `head_bytes` wrote it, unharmed."""
    return raw[-_TAIL:-12] == _SEAL and raw[-12:] == b'%08x"\n}\n' % zlib.crc32(raw[:-_TAIL])


def parse_head(raw: bytes) -> dict[str, Any] | None:
    """Return the document of a file, ours or any other's; None if it is not a JSON object."""
    try:
        document = parse_json(raw)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    document.pop("crc", None)
    return document


def whole_head(raw: bytes | None) -> dict[str, Any]:
    """Return what makes sense of a head as `head_bytes` wrote it; {} where it is missing or harmed."""
    document = (parse_head(raw) if raw and sealed(raw) else None) or {}
    return {key: value for key, value in document.items() if key not in CHECKS or not CHECKS[key](value)}


class HeadText(Mapping[str, Any]):
    """A sealed head that is parsed only as far as it is asked: a filter over thousands of runs reads a few keys.

    A field that is not what it must be raises ValueError: the seal says who wrote it, not what.
    """

    def __init__(self, raw: bytes, changed: Mapping[str, Any]) -> None:
        self._raw = raw
        self._changed = changed
        self._whole: dict[str, Any] | None = None

    def whole(self) -> dict[str, Any]:
        if self._whole is None:
            document = {**(parse_head(self._raw) or {}), **self._changed}
            # No call of ours for each field: whoever looks over a store does this once a run.
            for key, check in CHECKS.items():
                if key in document and (found := check(document[key])):
                    raise ValueError(f"{key}{found}")
            self._whole = document
        return self._whole

    def wanted(self, match: Callable[[Mapping[str, Any]], bool] | None) -> bool:
        """Return whether a filter takes the document; one that it takes is sound in every field.

        Raises:
            ValueError: A field is not what it must be: what the records say holds.
        """
        if match is not None and not match(self):
            return False
        self.whole()
        return True

    def __getitem__(self, key: str) -> Any:
        value = self._changed.get(key, _MISSING) if self._whole is None else self._whole.get(key, _MISSING)
        if value is _MISSING and self._whole is None:
            value = scan_key(self._raw, key)
            if value is _MISSING:
                value = self.whole().get(key, _MISSING)
            else:
                _check(key, value)
        if value is _MISSING:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self.whole())

    def __len__(self) -> int:
        return len(self.whole())


def _check(key: str, value: Any) -> None:
    check = CHECKS.get(key)
    if check is not None and (found := check(value)):
        raise ValueError(f"{key}{found}")


def scan_key(raw: bytes, key: str) -> Any:
    """Return the value of a top-level key that is on one line of a sealed head; else a mark that is no JSON value.

    A text in JSON holds no bare newline, so a line that begins with two spaces and a quote is a top-level key.
    """
    mark = b'\n  "%s": ' % key.encode()
    begin = raw.find(mark)
    if begin < 0:
        return _MISSING
    begin += len(mark)
    value = raw[begin : raw.index(b"\n", begin)].rstrip(b",")
    # Most are plain words, whole numbers or null; a tenth of the time of the JSON parser, over thousands of runs.
    if value == b"null":
        return None
    if value[:1] == b'"' and b"\\" not in value and value.find(b'"', 1) == len(value) - 1:
        return value[1:-1].decode("ascii")
    if value.isdigit():
        return int(value)
    try:
        return parse_json(value)
    except ValueError:
        return _MISSING


def scan_int(raw: bytes, key: str) -> int:
    """Return a top-level whole number; -1 where there is none."""
    value = scan_key(raw, key)
    return value if isinstance(value, int) and not isinstance(value, bool) else -1
