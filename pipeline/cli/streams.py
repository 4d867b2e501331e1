"""The three standard streams, whatever the caller made of them: closed, full, or read by nobody."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable

from pipeline.cli.text import warn

#: What a write to a device, a full disk or a limited file raises.
_REFUSALS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EBADF, errno.ENXIO})


def fill_closed_streams() -> None:
    """Put /dev/null where the caller closed a stream.

    Else the next file opened would get its number, and what is meant for a screen would be written into it.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(number, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False))  # noqa: SIM115


def hush_stdout() -> None:
    """What is still buffered for stdout goes nowhere, without a complaint at exit."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(devnull, sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    finally:
        os.close(devnull)


def quietly(write: Callable[[], None]) -> None:
    """Write to stdout; where it takes nothing any more, the exit code is still that of the work."""
    try:
        write()
        sys.stdout.flush()
    except OSError as error:
        stdout_refused(error)


def is_of_stdout(error: OSError) -> bool:
    """Whether stdout raised this: what files refuse is translated where they are written, or names them."""
    return isinstance(error, BrokenPipeError) or (error.filename is None and error.errno in _REFUSALS)


def stdout_refused(error: OSError) -> int:
    """Stop writing to stdout, and say so unless its reader left on purpose.

    Returns the exit code of a command that had nothing else to do than to write.
    """
    hush_stdout()
    if isinstance(error, BrokenPipeError):
        return 0
    warn(f"Error: stdout cannot be written: {error.strerror or error}.")
    return 1
