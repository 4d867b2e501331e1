"""A memory in a file of JSON lines, and a pipeline that reads and writes it."""

import json
import os
from pathlib import Path

from pipeline import Pipeline, StepContext, step


class FileMemory:
    """Remembers lines of a file; the same key twice is remembered once."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rows(self) -> list[dict[str, str]]:
        """Everything remembered, oldest first."""
        return [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []

    def read(self, query: str) -> list[tuple[str, str, float]]:
        """Every line that holds the query, the newest strongest."""
        found = [row for row in self.rows() if query in row["content"]]
        return [(row["key"], row["content"], (place + 1) / len(found)) for place, row in enumerate(found)]

    def write(self, type: str, content: str, scope: str, key: str) -> None:
        if any(row["key"] == key for row in self.rows()):
            return
        with self.path.open("a") as out:
            out.write(json.dumps({"key": key, "type": type, "scope": scope, "content": content}) + "\n")
            out.flush()
            os.fsync(out.fileno())


@step()
def visit(ctx: StepContext) -> dict:
    """Look up what is known of a town, and remember that it was visited."""
    town = ctx.params["town"]
    before = ctx.memory.read(town)
    ctx.memory.write("visit", f"{town}, visit {len(before) + 1}", scope="towns")
    return {"town": town, "visits_before": len(before)}


PIPELINE = Pipeline("visits", [visit])
