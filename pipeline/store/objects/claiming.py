"""At most one unfinished run a claim, without a lock that could stay behind: who is first is seen afterwards.

Everyone writes an intent over the claim's object, looks for a holder, makes its run, and then finds its intent still
there, or takes the run back. Whoever came between looks after its own intent was written, so it finds that run.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import threading

from pipeline.clock import SystemClock
from pipeline.records.codec import decode_line
from pipeline.records.kinds import RunStarted
from pipeline.records.lines import LineDamaged
from pipeline.store.base import Claim
from pipeline.store.names import is_id
from pipeline.store.objects import keys
from pipeline.store.objects.bucket import Bucket, Entry

#: A run whose creator does not know yet whether it was first.
_PENDING, _PROVEN = b"pending", b""
_LOOKS = 20


def holders(bucket: Bucket, claim: Claim) -> list[str]:
    """Runs that were begun with this claim, newest first, whatever became of them."""
    folder = _folder(claim.to_json())
    found = _marked(bucket, folder)
    for number in range(_LOOKS):
        if not any(entry.size for entry in found):
            break
        # Its creator is about to prove it or to take it back; where it died, the run counts.
        pause(number)
        found = _marked(bucket, folder)
    return sorted((entry.key.rpartition("/")[2] for entry in found), key=keys.head)


def _marked(bucket: Bucket, folder: str) -> list[Entry]:
    return [each for each in bucket.all_under(folder, keys.first(folder)) if is_id(each.key.removeprefix(f"{folder}/"))]


def mark(bucket: Bucket, run_id: str, first: bytes, *, proven: bool) -> None:
    """Name a run among those of the claim that its first record holds, if any."""
    if key := _marker(run_id, first):
        bucket.put(key, _PROVEN if proven else _PENDING)


def unmark(bucket: Bucket, run_id: str, first: bytes) -> None:
    """The run is gone."""
    if key := _marker(run_id, first):
        bucket.delete([key])


def pause(number: int) -> None:
    """Wait a moment, longer each time, and never as long as another does. Real time: others are real."""
    SystemClock().wait(threading.Event(), random.uniform(0, min(0.01 * (number + 1), 0.5)))


class Intent:
    """That somebody is about to make a run with a claim."""

    def __init__(self, bucket: Bucket, claim: Claim) -> None:
        self._bucket = bucket
        self._key = _folder(claim.to_json()) + ".intent"
        self._etag = bucket.put(self._key, _text()) or ""

    def stands(self) -> bool:
        """Whether nobody else meant to since: then whoever looks from now on finds our run."""
        return self._bucket.put_over(self._key, _text(), self._etag) is not None


def _marker(run_id: str, first: bytes) -> str:
    try:
        fact = decode_line(first.partition(b"\n")[0]).fact
    except LineDamaged:
        return ""
    claim = fact.claim if isinstance(fact, RunStarted) else None
    return f"{_folder(list(claim))}/{run_id}" if claim else ""


def _folder(claim: list[str]) -> str:
    return f"{keys.CLAIMS}/{hashlib.sha256(json.dumps(claim).encode()).hexdigest()[:32]}"


def _text() -> bytes:
    return os.urandom(16).hex().encode()
