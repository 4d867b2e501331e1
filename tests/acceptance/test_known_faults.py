"""Every fault known of the system before ours and of products like it has tests here: tests/known_faults.txt."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def test_each_known_fault_has_tests_that_exist() -> None:
    lines = (TESTS / "known_faults.txt").read_text("utf-8").splitlines()
    faults = dict(line.split(": ") for line in lines if not line.startswith("#"))
    assert len(faults) == sum(not line.startswith("#") for line in lines), "a fault stands there twice"
    text = "".join(file.read_text("utf-8") for file in TESTS.rglob("test_*.py"))
    known = set(re.findall(r"^def (test_\w+)", text, re.MULTILINE))
    assert {fault: lost for fault, names in faults.items() if (lost := set(names.split()) - known)} == {}
