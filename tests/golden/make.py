"""Makes the golden stores: small stores of every kind of run, packed with what they said of themselves when made.

    git worktree add ../then COMMIT && cd ../then
    PYTHONPATH=. .venv/bin/python …/tests/golden/make.py stores.tar.xz [NAME …]

They are made by the code of the checkout that it is started in. Each is a folder of the archive: the store, and
facts.json. A process is killed while its n-th request waits for an answer, so what was recorded does not depend on how
fast the machine is; run ids and times are those of the day.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline import AnthropicModel, CheckpointStore, ControlledExecutor, LangGraphSaver
from pipeline.clock import SystemClock
from pipeline.store.files import FileStore
from pipeline.store.url import open_store
from tests.graph_runs import document
from tests.servers import bill, models
from tests.servers.bill import blocks
from tests.servers.billing import BillingServer
from tests.servers.lessons import answer, task_data
from tests.servers.objects import Moto, environ
from tests.servers.postgres import Postgres
from tests.servers.replies import Responder, echo

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
books: Any = importlib.import_module("books")
CLOCK = SystemClock()


def reply(body: Mapping[str, Any], fault: str) -> str:
    """What the provider answers: lessons as their author, all else said back."""
    return answer(body, fault) if task_data(body) else echo(body, fault)


def asked(body: Mapping[str, Any]) -> str:
    """What was asked, however it was sent."""
    texts = ["".join(block["text"] for block in blocks(turn["content"])) for turn in body["messages"]]
    system = "".join(block["text"] for block in blocks(body.get("system") or []))
    return hashlib.sha256(json.dumps([body["model"], system, texts]).encode()).hexdigest()[:24]


@dataclass
class Gate:
    """Answers until a number of requests has come; that one and all later ones wait."""

    responder: Responder
    stops_at: int = 0
    answered: list[str] = field(default_factory=list)
    reached: threading.Event = field(default_factory=threading.Event)
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _never: threading.Event = field(default_factory=threading.Event)

    def __call__(self, body: Mapping[str, Any], fault: str) -> str:
        with self._lock:
            self._count += 1
            held = bool(self.stops_at) and self._count >= self.stops_at
        if held:
            self.reached.set()
            self._never.wait(60)
        self.answered.append(asked(body))
        return self.responder(body, fault)


@dataclass
class Scene:
    """One golden store being made."""

    home: Path
    server: BillingServer
    gate: Gate
    env: dict[str, str]
    url: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def store(self) -> str:
        return self.url or f"files:{self.home / 'store'}"

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "pipeline", *words, "--store", self.store]

    def run(self, *words: str, code: int = 0) -> str:
        """The command line to its end; its stdout."""
        done = subprocess.run(self.argv(*words), env=self.env, cwd=HERE, capture_output=True, text=True, check=False)
        assert done.returncode == code, (words, done.returncode, done.stdout[-3000:], done.stderr[-3000:])
        return done.stdout

    def killed(self, *words: str, at: int, until: Callable[[], bool] | None = None) -> None:
        """Start, and kill -9 with all its children while the at-th request waits, or once something holds."""
        self.gate.stops_at = at
        process = subprocess.Popen(
            self.argv(*words), env=self.env, cwd=HERE, start_new_session=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        for _ in range(3000):
            if (until() if until else self.gate.reached.is_set()) or process.poll() is not None:
                break
            CLOCK.wait(threading.Event(), 0.02)
        assert process.poll() is None, process.stderr and process.stderr.read()[-3000:]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.gate.stops_at = 0

    def json(self, *words: str) -> list[Any]:
        return [json.loads(line) for line in self.run(*words, "--json").splitlines()]

    def look(self) -> None:
        """Record what the store says of its runs, and what was answered by the provider."""
        runs = self.json("list")
        self.facts["list"] = runs
        self.facts["cost"] = self.json("cost")
        if all(row["status"] != "corrupt" for row in runs):
            self.facts["runs"] = {
                row["run_id"]: {
                    "status": self.json("status", row["run_id"])[0],
                    "cost": self.json("cost", row["run_id"]),
                }
                for row in runs
            }
        self.facts["answered"] = list(self.gate.answered)
        self.facts["bill_usd"] = str(self.server.bill.usd)


def book(*more: str, name: str = "BOOK") -> list[str]:
    """The start of a pipeline of books.py."""
    return ["run", f"books.py:{name}", "--quiet", "--concurrency", "1", *more]


TOPIC = ("--param", "topic=the sky")


def published(folder: Path) -> dict[str, str]:
    """The data of a published course: file → hash; pages may look otherwise tomorrow."""
    files = sorted(folder.glob("course_*/data/*.json"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def course(scene: Scene, *more: str) -> list[str]:
    return ["lessons", "--subject", "maths", "--level", "n5", "--lessons", "3", "--quiet", "--concurrency", "1",
            "--out", str(scene.home / "out"), *more]  # fmt: skip


def lessons_offline(scene: Scene) -> None:
    scene.run(*course(scene, "--model", "offline"))
    scene.facts["published"] = published(scene.home / "out")


def lessons_paid(scene: Scene) -> None:
    scene.run(*course(scene))
    scene.facts["published"] = published(scene.home / "out")


def lessons_half(scene: Scene) -> None:
    """Killed in the third of six calls for lessons; what an undisturbed run publishes is noted."""
    with scene_of(reply) as other:
        lessons_paid(other)
    scene.facts["published"] = other.facts["published"]
    scene.killed(*course(scene), at=8)


def lessons_redone(scene: Scene) -> None:
    """A lesson was made again with a note, and the second time killed on the way."""
    lessons_paid(scene)
    run = scene.json("list")[0]["run_id"]
    scene.run("redo", run, "lessons/2", "--note", "More examples.", "--quiet", "--out", str(scene.home / "out"))
    again = ["redo", run, "lessons/3", "--note", "Fewer.", "--quiet", "--out", str(scene.home / "out")]
    scene.killed(*again, at=len(scene.gate.answered) + 2)


def lessons_damaged(scene: Scene) -> None:
    """A line in the middle was destroyed, and a resume repaired the journal."""
    scene.killed(*course(scene), at=8)
    run = scene.json("list")[0]["run_id"]
    journal = scene.home / "store" / run / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if b'"task_completed"' in line)
    lines[at] = b"x" * (len(lines[at]) - 1) + b"\n"
    journal.write_bytes(b"".join(lines))
    scene.run("lessons", "--resume", run, "--quiet", "--out", str(scene.home / "out"))
    assert list(journal.parent.glob("journal.damaged-*"))


def book_half(scene: Scene) -> None:
    """Killed in the last ask of the second chapter."""
    scene.killed(*book(*TOPIC), at=11)


def book_begun(scene: Scene) -> None:
    """Killed in the third ask of the first step."""
    scene.killed(*book(*TOPIC), at=3)


def book_sqlite(scene: Scene) -> None:
    scene.url = f"sqlite:{scene.home / 'runs.db'}"
    book_half(scene)


def book_postgresql(scene: Scene) -> None:
    """A real server's own database, dumped."""
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        server = Postgres(Path(folder))
        try:
            scene.url = server.database()
            book_half(scene)
            scene.look()
            dump = ["pg_dump", "--inserts", "--no-owner", "--no-acl", "-h", "127.0.0.1", "-p", str(server.port)]
            program = str(server._bin / dump[0])
            name = scene.url.rpartition("/")[2]
            text = subprocess.run([program, *dump[1:], "-U", "tests", name], capture_output=True, check=True).stdout
        finally:
            server.stop()
    lines = [line for line in text.decode().splitlines() if line and not line.startswith(("--", "\\"))]
    (scene.home / "dump.sql").write_text("\n".join(lines) + "\n")


def book_objects(scene: Scene) -> None:
    """A bucket's objects as files, as a copy leaves them: no lease is in them."""
    book_half(scene)
    moto = Moto()
    scene.env |= environ(moto.endpoint)
    target = f"s3://{moto.bucket()}/runs"
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", "store", "copy", scene.store, target], env=scene.env, capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done
    scene.url = target
    scene.look()
    os.environ.update(environ(moto.endpoint))
    import obstore

    bucket = obstore.store.S3Store(target.split("/")[2], client_options={"allow_http": True})
    for page in obstore.list(bucket):
        for row in page:
            path = scene.home / "bucket" / row["path"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes(obstore.get(bucket, row["path"]).bytes()))
    moto.stop()
    subprocess.run(["rm", "-r", str(scene.home / "store")], check=True)


def book_threads(scene: Scene) -> None:
    """Three at once when it was killed."""
    scene.killed(*book("--concurrency", "3", *TOPIC), at=12)


def book_batch(scene: Scene) -> None:
    """Killed while a batch with the chapters' drafts is with the provider."""
    scene.server.batches.looks = 10**6
    # What the step itself asks goes out alone; then the four chapters go together.
    begun = ["run", "books.py:BOOK", "--quiet", "--batch", "--batch-min", "2", "--batch-poll", "0.1", *TOPIC]
    scene.killed(*begun, at=0, until=lambda: bool(scene.server.batches.held) and _recorded(scene, "batch_submitted"))
    scene.facts["batches"] = [
        {"id": held.id, "requests": [{key: row[key] for key in ("custom_id", "params")} for row in held.requests]}
        for held in scene.server.batches.held.values()
    ]


def _recorded(scene: Scene, kind: str) -> bool:
    return any(kind.encode() in path.read_bytes() for path in (scene.home / "store").glob("*/journal.jsonl"))


def book_parts(scene: Scene) -> None:
    """Items done by workers on a cluster; workers and coordinator die at once."""
    scene.url = f"sqlite:{scene.home / 'runs.db'}"
    scene.killed(*book("--executor", "dask:local", "--concurrency", "2", *TOPIC), at=12)


def book_forked(scene: Scene) -> None:
    """A whole run, and a fork of it at its first step that was killed on its way."""
    scene.run(*book(*TOPIC))
    run = scene.json("list")[0]["run_id"]
    scene.run("fork", run, "--at", "plan", "--set", 'outputs.plan.titles=["Skies","Skies"]')
    fork = next(row["run_id"] for row in scene.json("list") if row["parent"])
    scene.killed(*book("--resume", fork), at=len(scene.gate.answered) + 8)


def book_again(scene: Scene) -> None:
    """A whole run, made again from a step on and killed there."""
    scene.run(*book(*TOPIC))
    run = scene.json("list")[0]["run_id"]
    scene.killed(*book("--resume", run, "--from", "chapters"), at=len(scene.gate.answered) + 8)


def measured_unpriced(scene: Scene) -> None:
    """One call has no price, and one was in flight when the process was killed."""
    models.MODELS[books.UNPRICED] = models._model(books.UNPRICED)
    bill.PRICES[books.UNPRICED] = bill.PRICES[books.MODEL]
    scene.killed(*book("--max-cost-usd", "none", name="MEASURED"), at=4)


def account_cleaned(scene: Scene) -> None:
    """Two runs were removed by `cleanup`; their sums stand on the account alone. A third is there."""
    for topic in ("seas", "skies", "woods"):
        scene.run(*book("--param", f"topic={topic}"))
    scene.run("cleanup", "--max-runs", "1", "--yes")
    assert len(scene.json("list")) == 1


def dot_half(scene: Scene) -> None:
    """A routed graph with a fan-out, killed while one branch waits for its second reply."""
    scene.killed("run", "ways.dot", "--quiet", "--concurrency", "1", at=4)


def dot_folder(scene: Scene) -> None:
    """The same in a folder of its own."""
    words = ["run", "ways.dot", "--run-dir", str(scene.home / "run"), "--quiet", "--concurrency", "1"]
    scene.killed(*words, at=4)


def layered(scene: Scene) -> None:
    """Layers; a task of the second failed."""
    model = AnthropicModel(books.MODEL, api_key="sk-ant-of-nobody", base_url=scene.server.url)
    tools, store = {"work": books.Tool("c")}, FileStore(scene.home / "store", CLOCK)
    result = ControlledExecutor(books.LAYERS, tools, store=store, model=model).execute()
    model.close()
    scene.facts["ids"] = {"run": result.run_id, "status": result.status}


def agentos(scene: Scene) -> None:
    """Documents of another system, kept as they came."""
    checkpoints = CheckpointStore(open_store(scene.store))
    for number in (1, 2):
        checkpoints.save(document(id=f"cp-{number}", run="their-run", node="ab"[number - 1]))
    scene.facts["documents"] = [checkpoints.load("their-run", node).to_json() for node in "ab"]  # type: ignore[union-attr]


def langgraph(scene: Scene) -> None:
    """A thread that stopped at a question."""
    sys.path.insert(0, str(Path.cwd() / "devops" / "docs" / "examples"))
    graphs: Any = importlib.import_module("langgraph_graph")
    thread: Any = {"configurable": {"thread_id": "letter-1"}}

    async def stop() -> Any:
        letters = graphs.graph(LangGraphSaver(scene.store))
        return await letters.ainvoke({"topic": "tides", "lines": []}, thread)

    scene.facts["question"] = asyncio.run(stop())["__interrupt__"][0].value


SCENES: Sequence[Callable[[Scene], None]] = (
    lessons_offline, lessons_paid, lessons_half, lessons_redone, lessons_damaged, book_begun, book_half, book_sqlite,
    book_postgresql, book_objects, book_threads, book_batch, book_parts, book_forked, book_again, measured_unpriced,
    account_cleaned, dot_half, dot_folder, layered, agentos, langgraph,
)  # fmt: skip


@contextlib.contextmanager
def scene_of(responder: Responder) -> Iterator[Scene]:
    """An empty folder and a server of its own."""
    gate = Gate(responder)
    with tempfile.TemporaryDirectory(prefix="golden") as folder, BillingServer(responder=gate) as server:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC", "PIPELINE"))}
        env = {**kept, "ANTHROPIC_API_KEY": "sk-ant-of-nobody", "ANTHROPIC_BASE_URL": server.url,
               "XDG_STATE_HOME": f"{folder}/state", "PYTHONPATH": os.getcwd()}  # fmt: skip
        yield Scene(Path(folder) / "golden", server, gate, env)


def pack(archive: tarfile.TarFile, home: Path, name: str) -> None:
    """All of a folder; published courses are not among it."""

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        return None if info.name.split("/")[1:2] == ["out"] else info

    archive.add(home, name, filter=plain)


def main(target: Path, names: Sequence[str]) -> None:
    """Make them all, or those that are named."""
    # Equal blobs of many stores are packed once.
    with tarfile.open(target, "w:xz", preset=9) as archive:
        for make in SCENES:
            if names and make.__name__ not in names:
                continue
            with scene_of(reply) as scene:
                scene.home.mkdir()
                make(scene)
                if "list" not in scene.facts:
                    scene.look()
                (scene.home / "facts.json").write_text(json.dumps(scene.facts, indent=1, sort_keys=True))
                pack(archive, scene.home, make.__name__)
                sys.stdout.write(f"{make.__name__}: {len(scene.gate.answered)} answered\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
