"""What each extra is for and installs, whether it is there, and how it is installed into the Python that runs this."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping, Sequence

from pipeline import environment
from pipeline.errors import PackageMissing

#: As pyproject.toml says it.
EXTRAS: Mapping[str, tuple[str, ...]] = {
    "plot": ("matplotlib>=3.9,<4",),
    "postgres": ("psycopg[binary]>=3.3,<4",),
    "objects": ("obstore>=0.12,<0.13",),
    "dask": ("distributed>=2026.7",),
    "langgraph": ("langgraph-checkpoint>=4,<5",),
    "export": ("genanki>=0.13,<0.14", "python-docx>=1.2,<2", "python-pptx>=1.0.2,<2", "typst>=0.15,<0.16"),
    "otel": ("opentelemetry-exporter-otlp-proto-http>=1.45,<2", "opentelemetry-sdk>=1.45,<2"),
    "ui": ("jinja2>=3.1,<4", "starlette>=1.3,<2", "uvicorn>=0.40,<1"),
    "bedrock": ("boto3>=1.28.57,<2",),
    "vertex": ("google-auth[requests]>=2,<3",),
    "openai": ("openai>=3.30,<4",),
}
#: Other names of the same.
ALIASES: Mapping[str, str] = {
    "sql": "postgres", "bedrock-mantle": "bedrock", "aws": "bedrock", "google-cloud": "vertex",
}  # fmt: skip
#: What cannot be done without it, as people ask for it.
PURPOSES: Mapping[str, str] = {
    "plot": "cost --plot FILE.png",
    "postgres": "--store postgresql://…",
    "objects": "--store s3://BUCKET/PREFIX",
    "dask": "--executor dask:local and --executor dask://HOST:PORT",
    "langgraph": "LangGraphSaver, which keeps threads of LangGraph",
    "export": "export --to docx,pptx,pdf,anki,google-forms",
    "otel": "--otel and traces RUN, which send traces to a collector",
    "ui": "the desk in the browser",
    "bedrock": "--provider bedrock, bedrock-mantle and aws",
    "vertex": "--provider vertex and google-cloud",
    "openai": "--provider openai: OpenAI and whatever speaks as it does",
}
#: What a package is imported as, where that is not its name.
MODULES = {"langgraph-checkpoint": "langgraph.checkpoint", "python-docx": "docx", "python-pptx": "pptx",
           "google-auth": "google.auth", "opentelemetry-sdk": "opentelemetry.sdk",
           "opentelemetry-exporter-otlp-proto-http": "opentelemetry.exporter.otlp.proto.http"}  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9_-]+")


def packages(extra: str) -> list[str]:
    """Return the names of what an extra installs."""
    return [_NAME.findall(wanted)[0] for wanted in EXTRAS[extra]]


def is_installed(package: str) -> bool:
    """Return whether a package can be imported; it is not loaded."""
    try:
        return importlib.util.find_spec(MODULES.get(package, package)) is not None
    except ImportError:
        return False


def not_installed(extra: str, what: str, more: str = "", missing: Sequence[str] = ()) -> PackageMissing:
    """Return the error of what needs an extra that is not there.

    Args:
        more: Another way, behind the command that installs it.
        missing: Of its packages those that are needed here; (): all that are missing.
    """
    missing = missing or [name for name in packages(extra) if not is_installed(name)] or packages(extra)
    which = "a package that is" if len(missing) == 1 else "packages that are"
    said = f"{what} needs {which} not installed: {', '.join(missing)}."
    return PackageMissing(said, hint=how_to_install(extra) + more, extra=extra, packages=missing)


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra."""
    return environment.typed(f"./pipeline.sh install {extra}")
