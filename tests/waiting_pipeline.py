"""A pipeline of a file that runs until it is let go: for what looks at a run that is going."""

from __future__ import annotations

#: Two steps; the first waits until a file is there. Where another is, the process ends some seconds after its run.
SLOW = """
import atexit
import threading
from pathlib import Path
from pipeline.engine.pipeline import Pipeline
from pipeline.engine.step import step

@atexit.register
def linger():
    if Path(__file__).with_name("linger").exists():
        threading.Event().wait(4)

@step()
def wait(ctx):
    while not Path(__file__).with_name("go").exists():
        threading.Event().wait(0.02)
    return {"n": 1}

@step()
def after(ctx):
    return {"n": 2}

PIPELINE = Pipeline("slow", [wait, after])
"""
