"""Free look-ups at a provider: each is bounded in time as a whole, and in the bytes of its answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from pipeline.errors import ModelUnavailable

Found = TypeVar("Found")
#: Longest time that a model is looked up for, in seconds.
CHECK_SECONDS = 30.0
#: No list of models and no count of tokens is longer.
_MOST_BYTES = 20_000_000


def within(seconds: float, ask: Callable[[], Found]) -> Found:
    """Return what `ask` returns, or raise what it raises, within so many seconds in all.

    The timeouts of a client are of each read, so an answer that trickles passes them for ever. What is still asking
    then is left to a thread that nobody waits for.

    Raises:
        ModelUnavailable: There is no whole answer by then; `data["tries"]` as `faults.no_reply` has it.
    """
    answer: Future[Found] = Future()

    def work() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        return answer.result(seconds)
    except TimeoutError:
        if answer.done():
            raise
        raise _endless(f"The provider has not answered a look-up in full within {seconds:g} s.") from None


def bound(response: Any) -> None:
    """Give the answer to a look-up an end, whatever the server sends: a hook of an httpx2 client."""
    path = response.request.url.path
    if "/models" in path or path.endswith("/count_tokens"):
        response.stream = _bounded(response.stream)


def _endless(text: str) -> ModelUnavailable:
    return ModelUnavailable(text, code="look_up_endless", billed="no", retry_after=None, stops_run=False, tries=2)


def _bounded(stream: Any) -> Any:
    import httpx2

    class Bounded(httpx2.SyncByteStream):
        """The same bytes, and an error instead of too many."""

        def __iter__(self) -> Iterator[bytes]:
            size = 0
            for piece in stream:
                size += len(piece)
                if size > _MOST_BYTES:
                    raise _endless(f"The provider answers a look-up with more than {_MOST_BYTES:,} bytes.")
                yield piece

        def close(self) -> None:
            stream.close()

    return Bounded()
