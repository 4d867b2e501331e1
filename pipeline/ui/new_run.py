"""New run: a course, or a table of courses, planned and priced as one types, then made by a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from pipeline.app.cost_estimate import total_usd
from pipeline.app.courses import MOST, CourseLine, arguments, check, defaults, read_fields
from pipeline.app.limits import short_limits
from pipeline.app.plan import CoursePlan, plan
from pipeline.app.processes import start
from pipeline.app.run_advice import replaced_course
from pipeline.app.start import settings_now
from pipeline.content.names import shown
from pipeline.errors import ConfigError, PipelineError, SettingsConflict
from pipeline.lessons.catalogue import Catalogue
from pipeline.lessons.pipeline import bundle_name
from pipeline.settings import DEFAULT_CEILING_USD, DEFAULT_MODEL, EFFORTS, OFFLINE, UNTIL, Execution, Identity
from pipeline.ui.desk import Desk
from pipeline.ui.pages import Data, FormFields, PageAnswer, PageRoute, RawRoute, StreamRoute, WriteRoute, place

#: The settings that the form has.
OFFERED = ("subject", "level", "lessons", "model", "max_cost_usd", "daily_budget_usd", "batch", "review", "blind_solve",
           "effort", "until", "sample", "concurrency", "downloads", "labels", "force")  # fmt: skip
#: What to do about a setting that an unfinished run has otherwise.
_OWN_WAY = 'Leave the field empty to go on as before, or tick "A new run, even if one is unfinished".'
#: What the table of courses is called, in messages and beside the output of its process.
_TABLE = "courses.csv"


def _new(desk: Desk, request: Request) -> Data:
    """Return the form with what the query has in it, and the plan of that; nothing is called or written."""
    return _filled(desk, request.query_params)


def _filled(desk: Desk, typed: Mapping[str, str], *, starting: bool = False) -> Data:
    typed = {name: typed[name] for name in OFFERED if name in typed}
    read = read_fields(typed, desk.store_url or "", starting=starting)
    errors, made, refused = dict(read.errors) if typed or starting else {}, None, ""
    if not read.errors:
        try:
            made = plan(read.asked, read.execution)
        except SettingsConflict as error:
            refused = f"{error.message} {_OWN_WAY}"
        except PipelineError as error:
            refused = f"{error.message} {error.hint}".strip()
    files = Catalogue(read.asked.catalogue).files()
    return {
        "offered": list(OFFERED),
        "catalogue": str(read.asked.catalogue or ""),
        "fields": {**defaults(), **typed},
        "set_before": sorted(defaults()),
        "usual": {
            "lessons": Identity().lessons,
            "max_cost_usd": str(DEFAULT_CEILING_USD),
            "concurrency": Execution().concurrency,
        },
        "errors": errors,
        "refused": refused or None,
        "plan": _plan(made) if made else None,
        "replaces": _replaced(desk, made, read.execution) if made else None,
        "command": " ".join(["./pipeline.sh lessons", *arguments(typed), "--yes"]) + desk.store_words(),
        "subjects": [{"name": name, "word": shown(name)} for name in sorted({file.subject for file in files})],
        "levels": [{"name": name, "word": shown(name)} for name in sorted({file.level for file in files})],
        "models": [DEFAULT_MODEL, OFFLINE],
        "efforts": list(EFFORTS),
        "until": list(UNTIL),
    }


def _plan(made: CoursePlan) -> dict[str, Any]:
    """Return the object of `--dry-run --json` but its prompts, with what is reused counted."""
    told = made.to_json()
    del told["prompts"]
    actions = [item.action for item in made.items]
    return {**told, "short": [each.text for each in made.short], "others": dict(made.others),
            "made": actions.count("run"), "reused": actions.count("reuse")}  # fmt: skip


def _replaced(desk: Desk, made: CoursePlan, execution: Execution) -> str | None:
    """Return what people reviewed and this would publish over; None: nothing."""
    assert made.asks is not None
    recorded = desk.state(made.run).execution if made.run else {}
    name = bundle_name(made.asks.course.course_id, draft=made.author == OFFLINE)
    return replaced_course(desk.store(), execution, recorded, name, made.run) or None


def _start(desk: Desk, request: Request, form: FormFields) -> str | PageAnswer:
    """Start a process that makes the course; go to its run as soon as it has one."""
    data = _filled(desk, form, starting=True)
    if data["errors"] or data["refused"]:
        return PageAnswer("new.html", data, 400)
    usd = data["plan"]["expected_usd"]
    if form.get("shown", str(usd)) != str(usd):
        # Typed at the last moment: the button said another price.
        said = {"code": "price_not_shown", "message": "What was typed last comes to another price than was shown.",
                "hint": "It is shown now: start it if it is right.", "command": ""}  # fmt: skip
        return PageAnswer("new.html", {**data, "error": said}, 409)
    offered = {name: form[name] for name in OFFERED if name in form}
    begun = start(["lessons", *arguments(offered), "--yes"], desk.store_url)
    return place(f"runs/{begun.run}" if begun.run else "")


def _table(desk: Desk, request: Request) -> Data:
    """Return the form for a table of courses, empty."""
    return {"text": "", "lines": [], "short": [], "wrong": [], "hint": "", "expected_usd": None, "worst_usd": None,
            "most": MOST}  # fmt: skip


def _courses(desk: Desk, request: Request, form: FormFields) -> str | PageAnswer:
    """Check a table that was pasted or uploaded; start a process that makes its courses once it was seen checked."""
    text = form.get("file") or form.get("text", "")
    data = _table(desk, request) | {"text": text}
    read = read_fields({"subject": "-", "level": "-"}, desk.store_url or "")
    try:
        lines = check(text, _TABLE, read.asked, read.execution)
    except ConfigError as error:
        wrong = [{"line": number, "error": said} for number, said in error.data.get("lines", [(None, error.message)])]
        return PageAnswer("courses.html", data | {"wrong": wrong, "hint": error.hint}, 400)
    if form.get("do") == "start":
        start(["courses", _TABLE, "--yes"], desk.store_url, files={_TABLE: text})
        return place("")
    expected, worst = (total_usd(getattr(line.plan, name) for line in lines) for name in ("expected_usd", "worst_usd"))
    short = short_limits(read.execution.store_url, settings_now(read.execution, {}), expected, worst)
    data |= {"lines": list(map(_line, lines)), "short": [each.text for each in short], "expected_usd": expected,
             "worst_usd": worst}  # fmt: skip
    return PageAnswer("courses.html", data)


def _line(line: CourseLine) -> dict[str, Any]:
    made = line.plan
    return {"line": line.number, "title": made.title, "model": made.model, "lessons": made.lessons,
            "lessons_made": line.lessons_made, "complete": line.complete, "run": made.run or None, "note": made.note,
            "expected_usd": made.expected_usd, "worst_usd": made.worst_usd}  # fmt: skip


PAGES = (
    PageRoute("new", _new, "new.html", "new"),
    PageRoute("plan", _new, "_new_parts.html", "plan"),
    PageRoute("new/courses", _table, "courses.html", "courses"),
)
WRITES = (WriteRoute("new", _start, "new"), WriteRoute("new/courses", _courses, "courses"))
RAWS: tuple[RawRoute, ...] = ()
STREAMS: tuple[StreamRoute, ...] = ()
