"""Ports for servers that are told theirs: none that the system lends to a client before they listen."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket

#: Clients get ports from 32768 on.
_FIRST, _PORTS = 11_000, 10_000
#: SeaweedFS listens so many above each of its ports, too.
_ABOVE = 10_000
#: Processes that ask at once begin at places of their own.
_places = itertools.count(os.getpid() * 97)


def free_ports(count: int) -> list[int]:
    """So many ports on which nothing listens."""
    found: list[int] = []
    while len(found) < count:
        port = _FIRST + next(_places) % _PORTS
        with contextlib.suppress(OSError), socket.socket() as probe, socket.socket() as above:
            probe.bind(("127.0.0.1", port))
            above.bind(("127.0.0.1", port + _ABOVE))
            found.append(port)
    return found
