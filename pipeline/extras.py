"""What each extra installs, and how it is installed into the Python that runs this."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from collections.abc import Mapping

#: As pyproject.toml says it.
EXTRAS: Mapping[str, tuple[str, ...]] = {
    "plot": ("matplotlib>=3.9,<4",),
    "sql": ("alembic>=1.18,<2", "psycopg[binary]>=3.3,<4", "sqlalchemy>=2.1,<2.2"),
    "objects": ("obstore>=0.12,<0.13",),
    "dask": ("distributed>=2026.7",),
    "langgraph": ("langgraph-checkpoint>=4,<5",),
}


def how_to_install(extra: str) -> str:
    """The command to type; it needs no package index that knows this program."""
    installer = f"{sys.executable} -m pip install"
    if importlib.util.find_spec("pip") is None:
        installer = f"uv pip install --python {sys.executable}"
    wanted = " ".join(shlex.quote(each) for each in EXTRAS[extra])
    return f"{installer} {wanted}"
