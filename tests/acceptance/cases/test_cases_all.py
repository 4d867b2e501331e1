"""Every one of the 52 acceptance cases of the checkpoint systems is a test, or a benchmark, that carries its number."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
_TEST = re.compile(r"def test_case_((?:\d\d_)+)")
_BENCH = re.compile(r"[Cc]ases? ((?:\d\d(?:, | and )?)+)")
#: Timings: measured by benchmarks as ratios, never asserted in the suite.
TIMED = {39, 46, 47, 51, 52}


def test_every_case_is_a_test_or_a_benchmark() -> None:
    named = "".join(name for path in TESTS.rglob("test_*.py") for name in _TEST.findall(path.read_text("utf-8")))
    tested = set(map(int, named.split("_")[:-1]))
    benched = {
        int(number)
        for path in (TESTS / "benchmarks").glob("*.py")
        for found in _BENCH.findall(path.read_text("utf-8"))
        for number in re.findall(r"\d\d", found)
    }
    assert sorted(set(range(1, 53)) - tested - (benched & TIMED)) == []
    assert benched >= TIMED
