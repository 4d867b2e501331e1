"""What one course costs in four ways: naive, cached, in batches, cached in batches; by the command line, over HTTP.

    python tests/benchmarks/four_ways.py [LESSONS ...]

The same requests get the same answers each time; "naive" is a provider that takes no notice of cache marks. Prints a
table for each number of lessons, and what the best of all orders of the prompts could reach. No test; nothing fails.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.servers.bill import PRICES, PromptCache  # noqa: E402
from tests.servers.billing import BillingServer  # noqa: E402
from tests.servers.lessons import answer  # noqa: E402
from tests.servers.mishaps import Plan  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
MODEL = "claude-sonnet-5-5"
#: Way → its options, and whether the provider caches.
WAYS: dict[str, tuple[tuple[str, ...], bool]] = {
    "naive": ((), False),
    "cached": ((), True),
    "batch": (("--batch", "--batch-poll", "0.05"), False),
    "cached batch": (("--batch", "--batch-poll", "0.05"), True),
}
GOALS = {"cached": 0.75, "cached batch": 0.45}


@dataclass
class Made:
    """One course and its account."""

    usd: Decimal
    #: By the provider's own bill.
    billed: Decimal
    #: Kind → tokens of the ledger.
    tokens: dict[str, int]
    #: By the line `total` of `cost --json`.
    saved_cache: Decimal
    saved_batch: Decimal
    published: dict[str, str]


def pipeline(server: BillingServer, folder: Path, *words: str) -> str:
    """What the command line prints; nothing of this machine's settings reaches it."""
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT)}
    env |= {"ANTHROPIC_API_KEY": "test", "ANTHROPIC_BASE_URL": server.url}
    command = [sys.executable, "-m", "pipeline", *words, "--store", f"files:{folder / 'store'}"]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def make(way: str, lessons: int, plan: Plan | None = None) -> Made:
    """Make a course in one of the ways."""
    options, caches = WAYS[way]
    with tempfile.TemporaryDirectory() as name, BillingServer(responder=answer, plan=plan) as server:
        folder = Path(name)
        server.cache = PromptCache(marks=caches)
        course = ("--subject", "mathematics", "--level", "national_5", "--lessons", str(lessons), "--model", MODEL)
        pipeline(server, folder, "lessons", *course, "--yes", "--out", str(folder / "out"), *options)
        total = rows(pipeline(server, folder, "cost", "latest", "--json"))[-1]
        kinds = rows(pipeline(server, folder, "cost", "latest", "--by", "token_kind", "--json"))
        return Made(
            Decimal(str(total["cost_usd"])),
            server.bill.usd,
            {row["key"]: int(row["input_tokens"] + row["output_tokens"]) for row in kinds if row["type"] == "line"},
            Decimal(str(total["saved_cache_usd"])),
            Decimal(str(total["saved_batch_usd"])),
            published(folder / "out" / "course_c84775"),
        )


def published(folder: Path) -> dict[str, str]:
    """Every published file with its hash."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def bounds(tokens: dict[str, int]) -> tuple[float, float]:
    """What a cached course costs beside a naive one: if its prefixes were free, and if all its input were read."""
    price = {"input": PRICES[MODEL][0], "output": PRICES[MODEL][1], "read": PRICES[MODEL][2]}
    money = {name: Decimal(text) for name, text in price.items()}
    written = sum(count for kind, count in tokens.items() if kind.startswith("cache_write"))
    all_input = tokens["input"] + written + tokens["cache_read"]
    output = tokens["output"] * money["output"]
    naive = all_input * money["input"] + output
    return (
        float((tokens["input"] * money["input"] + output) / naive),
        float((all_input * money["read"] + output) / naive),
    )


def show(lessons: int, made: dict[str, Made]) -> None:
    naive = made["naive"]
    print(f"{lessons} lessons, {MODEL}")
    print(f"  {'':14} {'cost':>9} {'/ naive':>8} {'goal':>6} {'read':>6}  {'saved by cache, batch':>22}")
    for way, one in made.items():
        assert one.usd == one.billed, f"{way}: the ledger says {one.usd}, the bill {one.billed}"
        assert one.published == naive.published, f"{way}: something else was published"
        ratio = one.usd / naive.usd
        goal = GOALS.get(way)
        told = "" if goal is None else f"{goal:.2f}"
        verdict = "" if goal is None else "ok" if ratio <= Decimal(str(goal)) else "MISSED"
        whole = sum(count for kind, count in one.tokens.items() if kind != "output")
        read = one.tokens.get("cache_read", 0) / whole
        saved = f"${one.saved_cache:.4f}, ${one.saved_batch:.4f}"
        print(f"  {way:14} {f'${one.usd:.4f}':>9} {ratio:8.3f} {told:>6} {read:6.0%}  {saved:>22}  {verdict}")
    free, all_read = bounds(made["cached"].tokens)
    print(f"  bounds of cached / naive: {free:.3f} prefixes free, {all_read:.3f} all input read")


if __name__ == "__main__":
    for number in [int(word) for word in sys.argv[1:]] or [18, 40]:
        show(number, {way: make(way, number) for way in WAYS})
