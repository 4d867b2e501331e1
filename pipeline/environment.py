"""Where the program lives and which variables it reads; nothing here is heavy, for commands that only look."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pipeline.files import read_regular

#: Option → environment variable. None: it permits one act, so it is given each time.
VARIABLES: Mapping[str, str | None] = {
    "subject": "PIPELINE_SUBJECT",
    "level": "PIPELINE_LEVEL",
    "model": "PIPELINE_MODEL",
    "effort": "PIPELINE_EFFORT",
    "lessons": "PIPELINE_LESSONS",
    "catalogue": "PIPELINE_CATALOGUE",
    "store": "PIPELINE_STORE",
    "out": "PIPELINE_OUT",
    "max_cost_usd": "PIPELINE_MAX_COST_USD",
    "budget": "PIPELINE_BUDGET",
    "daily_budget_usd": "PIPELINE_DAILY_BUDGET_USD",
    "concurrency": "PIPELINE_CONCURRENCY",
    "executor": "PIPELINE_EXECUTOR",
    "until": "PIPELINE_UNTIL",
    "sample": "PIPELINE_SAMPLE",
    "prices": "PIPELINE_PRICES",
    "dry_run": "PIPELINE_DRY_RUN",
    "prompts": "PIPELINE_PROMPTS",
    "quiet": "PIPELINE_QUIET",
    "json": "PIPELINE_JSON",
    "batch": "PIPELINE_BATCH",
    "batch_min": "PIPELINE_BATCH_MIN",
    "no_wait": "PIPELINE_NO_WAIT",
    "batch_poll": "PIPELINE_BATCH_POLL",
    "resubmit": None,
    "resume": None,
    "from_step": None,
    "refresh": None,
    "retry_unknown": None,
    "force": None,
    "yes": None,
    "accept_changes": None,
    "skip_failed": None,
    "retry_failed": None,
    "overwrite": None,
}


#: More than any `.env` holds.
_MOST_BYTES = 1 << 20
#: Options whose value is a path: in `.env` it counts from the folder of that file.
PATHS = ("store", "out", "catalogue", "prices", "prompts")


def home() -> Path:
    """Return the folder of pipeline.sh, with defaults and `.env`; the caller's folder where there is none."""
    folder = Path(__file__).resolve().parent.parent
    return folder if (folder / "pipeline.sh").is_file() else Path.cwd()


def default_store() -> str:
    """Return the store's URL where none is given."""
    return f"files:{home() / 'devops' / 'checkpoints'}"


def default_out() -> Path:
    """Return the folder published courses go to where none is given."""
    return home() / "devops" / "published"


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


def _unquoted(value: str) -> str:
    quote = value[:1]
    if quote in ("'", '"') and (end := value.find(quote, 1)) > 0:
        return value[1:end]
    return value.split(" #", 1)[0].rstrip()
