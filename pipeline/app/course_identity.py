"""What a course is made from: the settings that decide the work, and the texts a run of it is pinned to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.app.model_choice import author_kind, provider_in
from pipeline.app.start import Start
from pipeline.content.lesson import LESSON_SCHEMA
from pipeline.content.names import level_name, subject_name
from pipeline.errors import CheckpointCorrupt, ConfigError, SettingsConflict
from pipeline.files import parse_json
from pipeline.lessons.catalogue import Catalogue
from pipeline.lessons.course import Course
from pipeline.lessons.prompts import LESSON_PROMPTS, load_prompts
from pipeline.lessons.run_selection import conflicts
from pipeline.lessons.schemas import Scheme
from pipeline.providers import ANTHROPIC
from pipeline.records.statuses import COMPLETED
from pipeline.records.values import canonical, digest, value_hash
from pipeline.settings import OFFLINE, Identity, option_name
from pipeline.store.base import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.bank.topic import Bank
    from pipeline.lessons.schemas import Entry
    from pipeline.records.run import RunState

#: A pin of a prompt is named so.
_PROMPT = "prompt:"


def identity_of(asked: Identity, model: str, course: Course) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what decides the work, as recorded, and the texts it is pinned to."""
    prompts = load_prompts(course.to_json())
    pins: dict[str, Any] = {f"{_PROMPT}{name}": text for name, text in prompts.items()}
    identity = {
        "author": author_kind(model),
        "model": model,
        "effort": asked.effort,
        "lessons": asked.lessons,
        "blind_solve": asked.blind_solve,
        "lesson_schema": LESSON_SCHEMA[1],
        "catalogue": course.content_hash(),
        "prompts": value_hash(prompts),
    }
    if author_kind(model) != OFFLINE:
        identity["provider"] = asked.provider or ANTHROPIC
    return identity | bank_of(asked, model, course), pins | {"catalogue": course.to_json()}


def bank_of(asked: Identity, model: str, course: Course) -> dict[str, Any]:
    """Return the question bank that decides a draft: the hash of its topics, and the user's own folder."""
    if author_kind(model) != OFFLINE:
        return {}
    bank, folder = _bank(asked)
    return {"bank": bank.hash(course.id), "bank_folder": folder and str(folder)}


def unwritten_note(asked: Identity, model: str, course: Course) -> str:
    """Return what a person should know of a draft that has topics for a part of its course alone; "" for others."""
    if author_kind(model) != OFFLINE:
        return ""
    topics, every = _bank(asked)[0].paths, course.outcomes()
    written = sum((course.id, out.id) in topics for out in every)
    if written == len(every):
        return ""
    has = f"topics for {written} of the {len(every)} outcomes" if written else "no topics for any outcome"
    does = "writes lessons on those alone" if written else "plans the lessons and writes none of them"
    return (
        f"The question bank has {has} of {course.title}: the offline author {does}. A model writes all of it: set "
        "ANTHROPIC_API_KEY."
    )


def _bank(asked: Identity) -> tuple[Bank, Path | None]:
    """Return the question bank, and the user's own folder in it."""
    from pipeline.bank.topic import Bank

    folder = Path(os.path.abspath(os.path.expanduser(asked.bank))) if asked.bank else None
    return Bank([folder] if folder else []), folder


def prompts_in(pins: Mapping[str, Any]) -> dict[str, str]:
    """Return the prompts among pinned texts."""
    return {name.removeprefix(_PROMPT): text for name, text in pins.items() if name.startswith(_PROMPT)}


def todays_prompts(store: Store, state: RunState, pins: Mapping[str, Any]) -> dict[str, Any]:
    """Return the prompts of today's lessons that a run of an earlier schema of lessons is not pinned to, as pins.

    They have other names than its own: what it made from those stands, and the two are never mixed.
    """
    if f"{_PROMPT}{LESSON_PROMPTS[0]}" in {*state.pins, *pins}:
        return {}
    prompts = load_prompts(pinned(store, state, pins)[0].to_json())
    return {f"{_PROMPT}{name}": prompts[name] for name in LESSON_PROMPTS}


def earlier_schema(state: RunState, left: int, usd: str) -> SettingsConflict:
    """Return the refusal to write the rest of a course in another schema than its finished lessons.

    Args:
        left: Lessons that are not written yet.
        usd: What they cost, for people.
    """
    lessons = "lesson is" if left == 1 else "lessons are"
    return SettingsConflict(
        f"Run {state.run_id} was begun by an earlier version, with prompts for an earlier form of lesson; "
        f"{left} {lessons} still to be written.",
        code="earlier_lesson_schema",
        hint=f"--accept-changes writes them with today's prompts ({usd}); what is finished is kept, for nothing. "
        "--force starts a new run.",
        changed={"lesson_schema": [state.identity.get("lesson_schema", 1), LESSON_SCHEMA[1]]},
    )


def course_of_run(asked: Identity, state: RunState) -> Course:
    """Return the course that a run is of, as the catalogue has it now."""
    return Catalogue(asked.catalogue).course(str(state.params.get("subject")), str(state.params.get("level")))


def changed_settings(
    store: Store, asked: Identity, state: RunState, *, accept: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the identity settings that this start gives otherwise than they are pinned, and pins to replace.

    Args:
        accept: Changed settings are accepted.

    Raises:
        SettingsConflict: There are some, and they are not accepted; or another kind of author, or course.
    """
    check_same_course(asked, state)
    given: dict[str, Any] = {
        name: getattr(asked, name) for name in ("effort", "lessons", "blind_solve") if name in asked.given
    }
    if asked.model is not None:
        given |= {"model": asked.model, "author": author_kind(asked.model)}
    its = dict(state.identity)
    if asked.provider is not None and its.get("author") != OFFLINE:
        given["provider"], its["provider"] = asked.provider, provider_in(its)
    course = course_of_run(asked, state) if "catalogue" in asked.given else None
    if course is not None:
        given["catalogue"] = course.content_hash()
    if asked.bank is not None or ("bank" in state.identity and state.status != COMPLETED):
        folder = asked.bank or state.identity.get("bank_folder")
        given |= bank_of(replace(asked, bank=folder), str(state.identity.get("model")), course_of_run(asked, state))
    changed = conflicts(its, given)
    values = {key: list(pair) for key, pair in changed.items()}
    if "author" in changed:
        raise SettingsConflict(
            f"Run {state.run_id} was written by {changed['model'][0]}; a draft and a course by a model are never "
            "mixed.",
            code="author_conflict",
            hint="Omit --model to continue as before, or use --force for a new run.",
            changed=values,
        )
    if "bank" in changed and not accept:
        raise SettingsConflict(
            f"Run {state.run_id} was made from other topics of the question bank than there are now.",
            code="changed_bank",
            hint="--accept-changes writes its lessons again from these, --force starts a new run.",
            changed=values,
        )
    if changed and not accept:
        name, (pinned_value, value) = next(iter(changed.items()))
        raise SettingsConflict(
            f"Run {state.run_id} was made with {option_name(name)} {pinned_value}, but {value} is given now.",
            code="changed_settings",
            hint="Omit the option to continue as before, --accept-changes to run again what it affects, or --force "
            "for a new run.",
            changed=values,
        )
    identity = {name: value for name, (_, value) in changed.items()}
    if course is None or "catalogue" not in identity:
        return identity, {}
    return identity, {"catalogue": course.to_json(), **_refitted(store, state, course)}


def _refitted(store: Store, state: RunState, course: Course) -> dict[str, Any]:
    """Return the prompts that another region or framework of a run's course changes, as pins.

    Only those that are this program's own words for the course as it was: others a run keeps.
    """
    was, now = (load_prompts(each.to_json()) for each in (pinned(store, state, {})[0], course))
    return {
        name: now[key]
        for key, text in was.items()
        if now[key] != text and state.pins.get(name := f"{_PROMPT}{key}") == digest(canonical(text, name))
    }


def check_same_course(asked: Identity, state: RunState) -> None:
    """Refuse to resume a run under the name of another course.

    Raises:
        SettingsConflict: --subject or --level is given and differs from the run's.
    """
    for name, canonical_name in (("subject", subject_name), ("level", level_name)):
        given, its = str(getattr(asked, name)), str(state.params.get(name) or "")
        if name not in asked.given or not given or not its:
            continue
        if given != its and canonical_name(given) != canonical_name(its):
            raise SettingsConflict(
                f"Run {state.run_id} belongs to {state.params.get('subject')} {state.params.get('level')}, "
                f"but {option_name(name)} {getattr(asked, name)} is given.",
                code="course_conflict",
                hint=f"Omit {option_name(name)} to resume this run, or --resume for another course.",
                changed={name: [its, given]},
            )


def pinned(store: Store, state: RunState, pins: Mapping[str, Any]) -> tuple[Course, dict[str, str]]:
    """Return the course and the prompts a run works from: `pins` that will replace its own, else its own.

    Raises:
        CheckpointCorrupt: The run is pinned to no course that can be read.
    """
    # The graph is compared, not worked from.
    read = state.pins.keys() - pins.keys() - {"graph"}
    try:
        texts = {name: parse_json(store.get_blob(state.run_id, state.pins[name])) for name in sorted(read)}
        texts |= pins
        return Course.from_json(texts["catalogue"]), prompts_in(texts)
    except (ValueError, TypeError, KeyError) as error:
        raise CheckpointCorrupt(
            f"Run {state.run_id} is pinned to a course that cannot be read ({type(error).__name__}).", run=state.run_id
        ) from error


def lost_pins(start: Start, state: RunState, replaced: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts that the store has lost and this program still has, by name, to be stored again.

    A value is the same where its hash is. A completed run is left as it is.

    Args:
        replaced: Pins that are replaced anyway.

    Raises:
        CheckpointCorrupt: One is lost, and this program has another one of its name.
    """
    if state.status == COMPLETED:
        return {}
    lost = {}
    for name, blob in state.pins.items():
        if name not in replaced and name != "graph":
            try:
                start.store.get_blob(state.run_id, blob)
            except CheckpointCorrupt:
                lost[name] = blob
    if not lost:
        return {}
    now: dict[str, Any] = {}
    with suppress(ConfigError):
        now = identity_of(start.asked, str(state.identity.get("model")), course_of_run(start.asked, state))[1]
    same = {name: now[name] for name in lost if name in now and digest(canonical(now[name], name)) == lost[name]}
    called = {name: f"prompt {name.removeprefix(_PROMPT)}" if name.startswith(_PROMPT) else name for name in lost}
    if other := next((name for name in lost if name not in same), ""):
        raise CheckpointCorrupt(
            f"The store has lost the {called[other]} that run {state.run_id} works from ({lost[other]}), and this "
            "program has a different one.",
            code="pin_lost",
            hint="Restore it: `./pipeline.sh store copy` from another store that has the run. Or start a new run: "
            f"--force. `./pipeline.sh store check {state.run_id}` shows what else is lost.",
            blob=lost[other],
        )
    start.emit("note", text="The store had lost what the run works from "
               f"({', '.join(called[name] for name in same)}); it is restored from this program.")  # fmt: skip
    return same


def scheme_of(store: Store, state: RunState) -> Sequence[Entry] | None:
    """Return the scheme that a run works from, once it has one; None also where it cannot be read.

    An estimate is made without it: the run itself finds out that it is damaged, and makes it again.
    """
    sow = state.steps.get("sow#1")
    if sow is None or sow.status != COMPLETED or "scheme" not in sow.artifacts:
        return None
    try:
        return Scheme.model_validate_json(store.get_blob(state.run_id, sow.artifacts["scheme"])).entries
    except (CheckpointCorrupt, ValueError):
        return None
