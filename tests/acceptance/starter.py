"""Starts the program many times at the price of one: it has written a course, then each start is a fork of it.

Reads one JSON object a line: {"argv", "env", "log"} is answered {"pid"}; {"wait"} (a pid; -1: any) is answered
{"pid", "status"} (exit code, or minus the signal) when that process has ended.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[2])

import anthropic  # noqa: E402
import genai_prices.data  # noqa: E402

import pipeline.app.run_dot  # noqa: E402
import pipeline.formats.attractor.library  # noqa: E402
import pipeline.lessons.pipeline  # noqa: E402
import pipeline.llm.anthropic  # noqa: E402
import pipeline.publish.folder  # noqa: E402
from pipeline.cli.main import main  # noqa: E402

_WARM = (
    anthropic, genai_prices.data, pipeline.app.run_dot, pipeline.formats.attractor.library, pipeline.lessons.pipeline,
    pipeline.llm.anthropic, pipeline.publish.folder,
)  # fmt: skip
#: What is written before the first fork; it asks no model.
COURSE = ("--model", "offline", "--subject", "maths", "--level", "n5", "--lessons", "4")


def warm() -> None:
    """Write a course, so that what a process computes once is there in each fork."""
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        places = ["--store", f"files:{folder}/store", "--out", f"{folder}/out"]
        code = main(["lessons", *COURSE, *places])
    if code != 0:
        raise SystemExit(said.getvalue())


def child(order: dict[str, Any]) -> None:
    """What a start does in its own process; never returns."""
    code = 70
    try:
        log = os.open(str(order["log"]), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        for number in (1, 2):
            os.dup2(log, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ.update(order["env"])
        code = main([str(word) for word in order["argv"]])
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def tell(**facts: int) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    warm()
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            ended, status = os.waitpid(order["wait"], 0)
            tell(pid=ended, status=os.waitstatus_to_exitcode(status))
        elif (started := os.fork()) == 0:
            child(order)
        else:
            tell(pid=started)
