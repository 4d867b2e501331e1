"""What it means that an executor gives an error in place of an answer, in words for people."""

from __future__ import annotations

from concurrent.futures import CancelledError

from pipeline.errors import ExecutorLost, PipelineError

#: What dask gives where a task was on several workers, and each of them died.
_KILLED = "KilledWorker"


def why_lost(task: str, error: BaseException) -> PipelineError:
    """The error that stops the run: what was handed out does not come back; what it recorded is there."""
    if isinstance(error, PipelineError):
        return error
    hint = "Start it again, then resume: nothing that was recorded is paid again."
    if type(error).__name__ == _KILLED:
        number = getattr(error, "allowed_failures", 0) + 1
        return ExecutorLost(
            f"{task} has killed every worker that did it, {number} of them.",
            hint="It ends its process, or needs more memory than a worker has. Once that is mended, resume: nothing "
            "that was recorded is paid again.",
            task=task,
        )
    if missing := missing_module(error):
        return ExecutorLost(
            f"The workers, or their scheduler, do not find the module {missing} that {task} is made of.",
            hint="Start each of them where it is found (PYTHONPATH=FOLDER …), then resume.",
            task=task,
        )
    text = " ".join(str(error).split())[:300]
    why = f"{type(error).__name__}{': ' if text else ''}{text}"
    if isinstance(error, CancelledError):
        why = "it took the task back, as one does whose scheduler is gone."
    return ExecutorLost(f"The executor has lost {task}: {why}", hint=hint, task=task)


def missing_module(error: BaseException | None) -> str | None:
    """The module that another process did not find; None if that is not what went wrong."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError):
            return error.name or "of the task"
        error = error.__cause__
    return None
