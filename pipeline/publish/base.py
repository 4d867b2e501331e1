"""Seam 3: where results go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Download:
    """A file to take away that a course is published with."""

    #: Below downloads/.
    path: str
    data: bytes
    #: Of which lesson; 0: of the whole course.
    lesson: int
    #: Words of a link to it: "core worksheet".
    label: str
    #: It holds answers.
    for_teacher: bool


@dataclass(frozen=True, slots=True)
class Bundle:
    """All that is published, as plain JSON and ready files; nothing in it depends on time, run, host or money."""

    #: Folder name below the output folder ("course_c84775", "course_c84775-draft").
    name: str
    #: The course: catalogue facts (title, code, groups, …), as the catalogue's to_json.
    course: Mapping[str, Any]
    #: The scheme of work (lessons.schemas.Scheme as JSON).
    scheme: Mapping[str, Any]
    #: The lessons in order: {"order", "lesson" (lessons.lesson.Lesson as JSON), "checks", "critic"}; "review" ({"by":
    #: names, "edited"}) where a person approved or edited it.
    lessons: Sequence[Mapping[str, Any]]
    #: Lessons that are not there: {"order", "label", "reason"}; "not_written" where no bank covers them.
    failed: Sequence[Mapping[str, Any]] = ()
    #: Who wrote it: {"author": "offline"|"model", "model", "prompts": {name: hash}, "catalogue": hash, …}.
    about: Mapping[str, Any] = field(default_factory=dict)
    #: True: "offline draft" on every page.
    draft: bool = False
    downloads: Sequence[Download] = ()


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where it is."""

    #: Absolute path of the published folder (what a person opens index.html in).
    path: str
    content_hash: str
    #: Number of files below it (receipt.json not counted).
    files: int
    #: False where the same hash was already published.
    new: bool = True


@dataclass(frozen=True, slots=True)
class Standing:
    """What is published under a name now."""

    #: Of the version that is there; "" where its manifest was changed.
    content_hash: str
    #: The run of the last receipt, and its version: the present one, or the one it replaced; "": unknown.
    run: str
    run_hash: str
    #: That version is still kept.
    kept: bool
    #: Files that were changed since.
    edited: Sequence[str] = ()


class Publisher(Protocol):
    """A target for a bundle."""

    def publish(self, bundle: Bundle, *, overwrite: bool = False) -> Receipt:
        """Build a version aside under its content hash, manifest last; then one atomic switch.

        The same bundle twice gives the same receipt. The previous version is kept.

        Raises:
            PublishedFilesEdited: Published files differ from their manifest; names them.
            PublishError: The folder cannot be written.
        """

    def receipt(self, bundle_name: str, facts: Mapping[str, Any]) -> None:
        """Write cost, run id and times beside the published version, outside its hash."""

    def standing(self, bundle_name: str) -> Standing | None:
        """Return what is published under that name now, or None."""
