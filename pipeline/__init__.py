"""A content pipeline with a journal: resumable at any moment, never paid twice, always accounted for.

The public names; each is loaded when it is first used.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if sys.platform == "win32":
    raise ImportError("course-pipeline runs on Linux and macOS; on Windows install and start it inside WSL.")

__version__ = "0.1.0"

#: Module → its public names.
_NAMES = {
    "engine.pipeline": "Pipeline",
    "engine.result": "RunResult",
    "engine.step": "step StepContext Outcome",
    "engine.tasks": "TaskFailure",
    "engine.events": "Event",
    "llm.base": "Request Reply Message ModelInfo Segment",
    "llm.anthropic": "AnthropicModel",
    "llm.openai": "OpenAIModel",
    "llm.forms": "typed",
    "llm.script": "ScriptedModel",
    "cost.prices": "PriceBook",
    "store.url": "open_store open_account",
    "store.manager": "CheckpointManager",
    "app.travel": "CheckpointStore",
    "formats.agentos.documents": "GraphCheckpoint",
    "travel.fork": "fork_run",
    "formats.casys.executor": "ControlledExecutor",
    "formats.casys.dag": "Dag",
    "formats.casys.checkpoints": "LayerCheckpoints",
    "formats.langgraph.saver": "LangGraphSaver",
    "formats.casys.tools": "TaskResult",
    "formats.casys.state": "WorkflowState",
    "formats.attractor.library": "parse_dot compile_graph run_compiled_graph run_dot GraphResult standard_registry",
    "formats.attractor.documents": "Checkpoint save_checkpoint load_checkpoint",
    "formats.attractor.outcome": "NodeOutcome",
    "formats.attractor.handlers.registry": "Registry Handler Visit",
    "formats.attractor.handlers.interviewers": "AutoApprove Callback Console Queue Recording",
    "engine.people": "Question Answer",
    "store.run_folder": "RunFolder",
    "records.documents": "PipelineState StepState",
}
_PUBLIC = {name: f"pipeline.{module}" for module, names in _NAMES.items() for name in names.split()}
#: Names that need an extra: they are loaded only where they are asked for by name.
_EXTRA = frozenset({"LangGraphSaver"})
__all__ = [*(name for name in _PUBLIC if name not in _EXTRA), "__version__"]

if TYPE_CHECKING:
    from pipeline.app.travel import CheckpointStore as CheckpointStore
    from pipeline.engine.events import Event as Event
    from pipeline.engine.people import Answer as Answer
    from pipeline.engine.people import Question as Question
    from pipeline.engine.pipeline import Pipeline as Pipeline
    from pipeline.engine.result import RunResult as RunResult
    from pipeline.engine.step import Outcome as Outcome
    from pipeline.engine.step import StepContext as StepContext
    from pipeline.engine.step import step as step
    from pipeline.engine.tasks import TaskFailure as TaskFailure
    from pipeline.errors import *  # noqa: F403
    from pipeline.formats.agentos.documents import GraphCheckpoint as GraphCheckpoint
    from pipeline.formats.attractor.documents import Checkpoint as Checkpoint
    from pipeline.formats.attractor.documents import load_checkpoint as load_checkpoint
    from pipeline.formats.attractor.documents import save_checkpoint as save_checkpoint
    from pipeline.formats.attractor.handlers.interviewers import AutoApprove as AutoApprove
    from pipeline.formats.attractor.handlers.interviewers import Callback as Callback
    from pipeline.formats.attractor.handlers.interviewers import Console as Console
    from pipeline.formats.attractor.handlers.interviewers import Queue as Queue
    from pipeline.formats.attractor.handlers.interviewers import Recording as Recording
    from pipeline.formats.attractor.handlers.registry import Handler as Handler
    from pipeline.formats.attractor.handlers.registry import Registry as Registry
    from pipeline.formats.attractor.handlers.registry import Visit as Visit
    from pipeline.formats.attractor.library import GraphResult as GraphResult
    from pipeline.formats.attractor.library import compile_graph as compile_graph
    from pipeline.formats.attractor.library import parse_dot as parse_dot
    from pipeline.formats.attractor.library import run_compiled_graph as run_compiled_graph
    from pipeline.formats.attractor.library import run_dot as run_dot
    from pipeline.formats.attractor.library import standard_registry as standard_registry
    from pipeline.formats.attractor.outcome import NodeOutcome as NodeOutcome
    from pipeline.formats.casys.checkpoints import LayerCheckpoints as LayerCheckpoints
    from pipeline.formats.casys.dag import Dag as Dag
    from pipeline.formats.casys.executor import ControlledExecutor as ControlledExecutor
    from pipeline.formats.casys.state import WorkflowState as WorkflowState
    from pipeline.formats.casys.tools import TaskResult as TaskResult
    from pipeline.formats.langgraph.saver import LangGraphSaver as LangGraphSaver
    from pipeline.llm.base import Message as Message
    from pipeline.llm.base import ModelInfo as ModelInfo
    from pipeline.llm.base import Reply as Reply
    from pipeline.llm.base import Request as Request
    from pipeline.llm.base import Segment as Segment
    from pipeline.llm.forms import typed as typed
    from pipeline.records.documents import PipelineState as PipelineState
    from pipeline.records.documents import StepState as StepState
    from pipeline.store.manager import CheckpointManager as CheckpointManager
    from pipeline.store.run_folder import RunFolder as RunFolder
    from pipeline.store.url import open_store as open_store
    from pipeline.travel.fork import fork_run as fork_run


def __getattr__(name: str) -> Any:
    # What is not in the table may be one of the errors.
    module = importlib.import_module(_PUBLIC.get(name, "pipeline.errors"))
    try:
        return getattr(module, name)
    except AttributeError:
        raise AttributeError(f"module 'pipeline' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted({*__all__, *_EXTRA})
