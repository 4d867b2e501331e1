"""A cluster is asked whether its processes can do our tasks, before one is handed out."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from pipeline import __version__
from pipeline.app import executors
from pipeline.engine.remote.messages import why_lost
from pipeline.errors import ConfigError, ExecutorLost


class Workers:
    """A client whose workers answer with a version, or cannot."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def submit(self, asked: object, *, pure: bool) -> Future[str]:
        made: Future[str] = Future()
        if isinstance(self._answer, BaseException):
            made.set_exception(self._answer)
        elif self._answer is not None:
            made.set_result(self._answer)
        return made


def not_found(module: str) -> RuntimeError:
    """What dask says where a process lacks a module."""
    error = RuntimeError("Error during deserialization of the task graph.")
    error.__cause__ = ModuleNotFoundError(f"No module named {module!r}", name=module)
    return error


def test_cluster_that_does_not_find_the_program_is_told_where_it_is() -> None:
    with pytest.raises(ConfigError, match=r"10\.0\.0\.5:8786 do not find this program") as caught:
        executors._check_program(Workers(not_found("pipeline")), "10.0.0.5:8786")
    assert "PYTHONPATH=/" in caught.value.hint


def test_cluster_of_another_version_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"version 0\.0\.9 of this program"):
        executors._check_program(Workers("0.0.9"), "10.0.0.5:8786")
    executors._check_program(Workers(__version__), "10.0.0.5:8786")


def test_cluster_that_answers_with_an_error_is_lost() -> None:
    with pytest.raises(ExecutorLost, match="do not answer: OSError"):
        executors._check_program(Workers(OSError()), "10.0.0.5:8786")


def test_busy_cluster_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "_CONNECT_SECONDS", 0)
    executors._check_program(Workers(None), "10.0.0.5:8786")


def test_task_whose_own_module_a_worker_lacks_names_it() -> None:
    lost = why_lost("lessons/7", not_found("my_course"))
    assert lost.code == "worker_module_missing"
    assert "module my_course that lessons/7 needs" in lost.message
    assert "PYTHONPATH" in lost.hint
