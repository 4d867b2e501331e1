"""Opening files that others may have put there: regular files only, never a wait, and no link where one is made."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_KINDS = (
    (stat.S_ISFIFO, "is a named pipe"), (stat.S_ISSOCK, "is a socket"), (stat.S_ISCHR, "is a device"),
    (stat.S_ISBLK, "is a device"),
)  # fmt: skip
_CHUNK = 1 << 20


def open_regular(path: str | Path, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Return a descriptor of a regular file, which children do not inherit; what else stands there is not waited for.

    Raises:
        OSError: It cannot be opened, or is a folder, pipe, socket or device.
    """
    if flags & os.O_CREAT and not flags & os.O_EXCL:
        flags |= os.O_NOFOLLOW
    try:
        fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, mode)
    except OSError as error:
        # So a socket is refused, and a pipe that is opened for writing only.
        if error.errno in (errno.ENXIO, errno.EOPNOTSUPP):
            raise OSError(error.errno, "it is a pipe, a socket or a device, not a regular file", str(path)) from None
        raise
    try:
        check_regular(os.fstat(fd).st_mode, path)
    except OSError:
        os.close(fd)
        raise
    return fd


def check_regular(mode: int, path: str | Path) -> None:
    """Refuse what is no regular file.

    Raises:
        OSError: Says what it is instead.
    """
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    what = next((text for is_kind, text in _KINDS if is_kind(mode)), "is something else")
    raise OSError(errno.EINVAL, f"it {what}, not a regular file", str(path))


def read_regular(path: str | Path, most: int = -1, flags: int = os.O_RDONLY) -> bytes:
    """Return the bytes of a regular file, of a longer one than `most` one byte more than that.

    Raises:
        OSError: As `open_regular`, or it cannot be read.
    """
    fd = open_regular(path, flags)
    try:
        data = os.read(fd, 1 << 16)
        if len(data) < 1 << 16:
            return data if most < 0 else data[: most + 1]
        parts, size = [data], len(data)
        while (most < 0 or size <= most) and (data := os.read(fd, _CHUNK)):
            parts.append(data)
            size += len(data)
        return b"".join(parts) if most < 0 else b"".join(parts)[: most + 1]
    finally:
        os.close(fd)


def read_text(path: str | Path, most: int) -> str:
    """Return the text of a regular file of at most `most` bytes.

    Raises:
        OSError: As `read_regular`.
        ValueError: It is larger, or not UTF-8.
    """
    raw = read_regular(path, most)
    if len(raw) > most:
        raise ValueError(f"is larger than {most:,} bytes")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 text (byte {error.start})") from None


@contextlib.contextmanager
def held(fd: int) -> Iterator[None]:
    """Hold an open file's lock, and close it; the kernel frees it at death. Some network folders have no locks."""
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def create_new(path: str | Path, mode: int = 0o666) -> int:
    """Return a descriptor of a new, empty file; what stood there under that name goes first, a link but not its target.

    Raises:
        OSError: It cannot be made.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags, mode)
    except FileExistsError:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return os.open(path, flags, mode)


def replace_file(path: Path, data: bytes) -> None:
    """Write a file whole and durably, aside under a name that cannot be foreseen, then put it in its place.

    Raises:
        OSError: It was not written; what was begun is removed.
    """
    aside = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        with open(create_new(aside), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise


def write_over(path: str | Path, data: bytes) -> None:
    """Write what a person named, in place of what it held: a regular file or a character device such as /dev/stdout.

    Raises:
        OSError: It is something else, or cannot be written.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, 0o666)
    with open(fd, "wb") as file:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISCHR(mode):
            check_regular(mode, path)
            os.ftruncate(fd, 0)
        os.set_blocking(fd, True)
        file.write(data)


def parse_json(text: bytes | str) -> Any:
    """Return the value of a JSON text from disk.

    Raises:
        ValueError: It is none, or nested deeper than can be read.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
