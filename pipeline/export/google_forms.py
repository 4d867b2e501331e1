"""Quizzes for Google Forms, which takes no files: a script for each lesson, to be run at script.google.com.

The lesson stands in it as data; nothing of it is run. Forms sets no formulas: they are plain characters (x², √50).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.drawing import figure as draw
from pipeline.export.base import Selection
from pipeline.formulas.pictures import picture
from pipeline.formulas.plain_text import plain
from pipeline.publish.questions import ShownQuestion
from pipeline.publish.view import CourseView, LessonView

_SCRIPT = """/*
 * Makes the quiz of a lesson in Google Forms: answers marked, feedback, pictures.
 * 1. Open https://script.google.com, New project, and paste all of this in place of what is there.
 * 2. Press Run (the function makeQuiz) and allow it to make a form in your Drive.
 * 3. The log at the bottom shows the address at which you edit the form. Each run makes a new form.
 */
const QUIZ = %s;

function makeQuiz() {
  const form = FormApp.create(QUIZ.title);
  form.setIsQuiz(true).setDescription(QUIZ.description);
  QUIZ.questions.forEach((question) => addQuestion(form, question));
  Logger.log(form.getEditUrl());
}

function addQuestion(form, question) {
  question.pictures.forEach((picture) => {
    if (!picture.png) {
      form.addSectionHeaderItem().setTitle(picture.title).setHelpText(picture.words);
      return;
    }
    const bytes = Utilities.base64Decode(picture.png);
    form.addImageItem().setTitle(picture.title).setHelpText(picture.words)
      .setImage(Utilities.newBlob(bytes, "image/png", "figure.png"));
  });
  const feedback = FormApp.createFeedback().setText(question.feedback).build();
  if (question.options.length) {
    const item = form.addMultipleChoiceItem();
    item.setTitle(question.title).setHelpText(question.help).setPoints(question.points)
      .setChoices(question.options.map((option) => item.createChoice(option.text, option.right)))
      .setFeedbackForCorrect(feedback).setFeedbackForIncorrect(feedback);
    return;
  }
  // Forms marks choices only: of other answers it shows the teacher's feedback once he has given the points.
  const item = question.long ? form.addParagraphTextItem() : form.addTextItem();
  item.setTitle(question.title).setHelpText(question.help).setPoints(question.points).setGeneralFeedback(feedback);
}
"""


def files(chosen: Selection) -> Iterator[tuple[str, bytes]]:
    """Yield a script for each lesson that has questions."""
    for lesson in chosen.lessons:
        if lesson.questions:
            quiz = json.dumps(_quiz(chosen.view, lesson), ensure_ascii=True, indent=1)
            # A closing tag would end the script in a page that shows it.
            yield f"{lesson.file}.gs", (_SCRIPT % quiz.replace("</", "<\\/")).encode("ascii")


def _quiz(view: CourseView, lesson: LessonView) -> dict[str, Any]:
    draft = " Offline draft: made without a model." if view.bundle.draft else ""
    return {
        "title": f"{lesson.order}. {plain(lesson.title)}",
        "description": f"{plain(view.title)}, {lesson.type.lower()} {lesson.order} of {view.total}.{draft}",
        "questions": [row for question in lesson.questions for row in _rows(question)],
    }


def _rows(question: ShownQuestion) -> Iterator[dict[str, Any]]:
    """Yield the items of a form for a question: one, or one for each part."""
    calculator = "No calculator." if question.calculator is False else ""
    pictures = [
        _picture(figure, f"Question {question.number}, figure {place}")
        for place, figure in enumerate(question.item.get("figures") or (), 1)
    ]
    ask, feedback = plain(question.ask), plain(question.item["feedback"])
    common = {"pictures": pictures, "options": [], "help": calculator, "long": False}
    if not question.parts:
        answer = f"Answer: {plain(question.answer)}\n"
        options = [{"text": plain(option.text), "right": option.right} for option in question.options]
        title = f"{question.number}. {ask}"
        yield common | {
            "title": title, "points": question.marks, "options": options, "feedback": answer + feedback,
            "long": _is_long(question.answer),
        }  # fmt: skip
        return
    for place, part in enumerate(question.parts):
        head = f"{question.number}{part.label} "
        title = f"{head}{ask}\n{plain(part.ask)}" if place == 0 else head + plain(part.ask)
        yield common | {
            "title": title, "points": part.marks, "feedback": f"Answer: {plain(part.answer)}\n{feedback}",
            "long": _is_long(part.answer), "pictures": pictures if place == 0 else [],
        }  # fmt: skip


def _is_long(answer: str) -> bool:
    """Return true where an answer takes more than a line."""
    return "\n" in answer or len(answer) > 60


def _picture(figure: Mapping[str, Any], title: str) -> dict[str, str]:
    """Return a figure as a picture with its words; a table, which is no picture, as its rows in words."""
    drawn = picture(figure)
    if drawn is not None:
        return {"title": title, "words": plain(drawn.alt), "png": base64.b64encode(drawn.png).decode("ascii")}
    columns, rows = draw.table(figure)
    return {"title": title, "words": "\n".join(" | ".join(map(plain, row)) for row in [columns, *rows]), "png": ""}
