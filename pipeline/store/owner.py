"""Who owns a run, as readers see it: the text of its lock, and whether the process that it names lives."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.clock import Clock
from pipeline.files import parse_json
from pipeline.records.statuses import IN_PROGRESS
from pipeline.store.disk import read_file

#: The lock's name in a run's folder.
LOCK = "lock"
#: An owner on another machine cannot be looked at; a run untouched for longer than this has none.
_FOREIGN_SECONDS = 24 * 3600
_PROC = Path("/proc/self/stat")


def is_owned(folder: str, touched: float, clock: Clock) -> bool:
    """Return whether the process that the lock names lives; `touched`: when the run last changed (POSIX seconds)."""
    try:
        # Empty in nearly every run; its size is told faster than its text.
        if os.stat(f"{folder}/{LOCK}").st_size == 0:
            return False
    except OSError:
        return False
    holder = owner(folder)
    return bool(holder) and alive(holder, otherwise=clock.now().timestamp() - touched < _FOREIGN_SECONDS)


def seen_now(document: Mapping[str, Any], owned: bool) -> dict[str, Any]:
    """Return what a reader sees otherwise than recorded: a running run whose owner died is interrupted."""
    if not owned and document.get("status") == IN_PROGRESS and document.get("status_detail") == "running":
        return {"status_detail": "interrupted"}
    return {}


def owner(folder: str | Path) -> dict[str, Any]:
    """Return what the lock's text says; {} if nothing readable. Never touches the lock itself."""
    try:
        text = read_file(f"{folder}/{LOCK}")
        data = parse_json(text) if text else {}
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def alive(holder: Mapping[str, Any], *, otherwise: bool) -> bool:
    """Return whether the process named in a lock's text lives; `otherwise` where that cannot be known from here."""
    pid = holder.get("pid")
    if not isinstance(pid, int) or pid <= 0:
        return False
    mine = process()
    if holder.get("host") != mine["host"] or holder.get("space") != mine["space"]:
        return otherwise
    if holder.get("boot") != mine["boot"]:
        return False
    started = process_started(pid)
    return started is not None and started == holder.get("started")


def process() -> dict[str, Any]:
    """Return how this process names itself in a lock: host, pid, its start, the boot and pid space that pid is of."""
    return json.loads(_own_text())  # type: ignore[no-any-return]


@functools.cache
def _own_text() -> str:
    pid = os.getpid()
    return json.dumps(
        {
            "host": os.uname().nodename,
            "pid": pid,
            "started": process_started(pid),
            "boot": (read_file("/proc/sys/kernel/random/boot_id") or b"").decode().strip(),
            "space": _pid_space(),
        }
    )


def _pid_space() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def process_started(pid: int) -> str | None:
    """Return when a process began, in the system's own words; None if there is no such process.

    A pid alone is reused; a pid with its start is not.
    """
    if _PROC.exists():
        try:
            text = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:
            return None
        fields = text[text.rindex(b")") + 2 :].split()
        # A zombie holds no lock any more.
        return None if fields[0] in (b"Z", b"X") else fields[19].decode()
    # Only where there is no /proc: elsewhere the import would be waited for in vain.
    import subprocess

    done = subprocess.run(["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


# A forked child is another process.
os.register_at_fork(after_in_child=_own_text.cache_clear)
