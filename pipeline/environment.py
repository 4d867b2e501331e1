"""Where the program lives and which variables it reads; nothing here is heavy, for commands that only look."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pipeline.files import read_regular

#: Options that have a variable, PIPELINE_ and the name in capitals.
_LASTING = (
    "subject", "level", "model", "provider", "base_url", "effort", "lessons", "blind_solve", "catalogue", "bank",
    "store", "out", "max_cost_usd", "budget", "daily_budget_usd", "concurrency", "executor", "until", "sample",
    "prices", "dry_run",
    "prompts", "quiet", "json", "batch", "batch_min", "no_wait", "batch_poll", "review",
    "otel", "otel_content",
)  # fmt: skip
#: Options that permit one act, so they are given each time.
_ONE_ACT = (
    "resubmit", "resume", "from_step", "refresh", "retry_unknown", "force", "yes", "accept_changes", "skip_failed",
    "retry_failed", "overwrite",
)  # fmt: skip
#: Option → environment variable; None: it has none.
VARIABLES: Mapping[str, str | None] = {
    **{name: f"PIPELINE_{name.upper()}" for name in _LASTING},
    # Named as its option is.
    "downloads": "PIPELINE_WITH",
    "labels": "PIPELINE_LABEL",
    **dict.fromkeys(_ONE_ACT),
}
#: How texts name the command that installs an extra.
_INSTALL = re.compile(r"\./pipeline\.sh install ([a-z-]+)")
#: Folders beside pipeline.sh that a copy which pip installed has in the current one.
_PLACES = re.compile(r"\bdevops/(checkpoints|published)\b")
#: Where runs and published courses stand, unless --store and --out say otherwise.
HOME = "PIPELINE_HOME"
#: More than any `.env` holds.
_MOST_BYTES = 1 << 20
#: Options whose value is a path: in `.env` it counts from the folder of that file.
PATHS = ("store", "out", "catalogue", "bank", "prices", "prompts")


def home() -> Path:
    """Return the folder of pipeline.sh, with defaults and `.env`; the caller's folder where there is none."""
    folder = Path(__file__).resolve().parent.parent
    return folder if (folder / "pipeline.sh").is_file() else Path.cwd()


def is_installed() -> bool:
    """Return whether this is a copy that pip installed: there is no pipeline.sh, the command is course-pipeline."""
    return not (Path(__file__).resolve().parent.parent / "pipeline.sh").is_file()


def typed(text: str) -> str:
    """Return a text with its commands and places as they are where pip has installed this program."""
    if "pipeline.sh" not in text or not is_installed():
        return text
    text = _INSTALL.sub(r"pip install 'course-pipeline[\1]'", text).replace("./pipeline.sh", "course-pipeline")
    return _PLACES.sub(r"course-runs/\1", text).replace("beside pipeline.sh", "in this folder")


def data_home() -> Path:
    """Return the folder below which runs and published courses stand where nothing else is given."""
    if told := os.environ.get(HOME):
        return Path(os.path.expanduser(told)).absolute()
    return Path.cwd() / "course-runs" if is_installed() else home() / "devops"


def default_store() -> str:
    """Return the store's URL where none is given."""
    return f"files:{data_home() / 'checkpoints'}"


def default_out() -> Path:
    """Return the folder published courses go to where none is given."""
    return data_home() / "published"


def read_env_file(path: Path) -> tuple[dict[str, str], list[int]]:
    """Return the NAME=value pairs of a `.env` file and the numbers of lines that are none; a missing file is empty.

    `export` before a name, matching quotes around a value, and `#` comments are understood;
    nothing is expanded.

    Raises:
        OSError: It is there and cannot be read.
    """
    try:
        text = read_regular(path, _MOST_BYTES).decode("utf-8-sig", errors="surrogateescape")
    except FileNotFoundError:
        return {}, []
    pairs: dict[str, str] = {}
    bad: list[int] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.removeprefix("export ").partition("=")
        # No variable can hold a NUL.
        if equals and name.strip().isidentifier() and "\0" not in value:
            pairs[name.strip()] = _unquoted(value.strip())
        else:
            bad.append(number)
    return pairs, bad


#: What else is read: of the start, of DOT pipelines, of the provider's reports.
_OTHERS = (
    "PIPELINE_PYTHON", "PIPELINE_VENV", HOME, "PIPELINE_PARAM", "PIPELINE_AGENT_CMD", "PIPELINE_RUN_DIR",
    "PIPELINE_SIMULATE", "PIPELINE_RESUME_FIDELITY", "PIPELINE_STAGE_DIR", "PIPELINE_EXECUTION_LOG",
    "ANTHROPIC_ADMIN_KEY",
)  # fmt: skip


def mistyped(names: Iterable[str], commands: Iterable[str], others: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the names that are nearly those of a variable, and that variable.

    Args:
        commands: Each may have variables of its own, PIPELINE_COMMAND_….
        others: What else may be set, the variables of providers.
    """
    known = {*_OTHERS, *others, *filter(None, VARIABLES.values())}
    own = tuple(f"PIPELINE_{each.upper().replace('-', '_')}_" for each in commands)
    for name in names:
        # The command `budget` has no option of that name itself.
        if name in known or (name.startswith(own) and name != "PIPELINE_BUDGET_USD"):
            continue
        import difflib

        limit = _LIMIT.match(name) is not None
        among = [each for each in known if each.endswith("_USD") or not limit]
        if near := difflib.get_close_matches(name.upper(), among, 1, cutoff=0.85):
            yield name, near[0]
        elif limit:
            yield name, str(VARIABLES["max_cost_usd"])


#: A limit under a name of the user's own: nothing would hold it.
_LIMIT = re.compile(r"(?i)PIPELINE_(\w+_)?(BUDGET|CAP|CEILING|COST|DOLLARS|LIMIT|SPEND|SPENDING|USD)(_|$)")


def _unquoted(value: str) -> str:
    quote = value[:1]
    if quote in ("'", '"') and (end := value.find(quote, 1)) > 0:
        return value[1:end]
    return value.split(" #", 1)[0].rstrip()
