"""Starts the program as often as asked, all at once: a fork of a process that has everything imported.

Reads one JSON object a line: an order as starter.py takes it, answered {"pid"}; or {}, which waits for any of
those started and answers {"pid", "status"}.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.acceptance.starter import child, tell

if __name__ == "__main__":
    for line in sys.stdin:
        if order := json.loads(line):
            started = os.fork()
            if started == 0:
                child(order)
            tell(pid=started)
        else:
            ended, status = os.wait()
            tell(pid=ended, status=os.waitstatus_to_exitcode(status))
