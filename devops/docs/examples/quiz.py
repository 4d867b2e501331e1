"""Typed answers: a plan as a pydantic model, a question a topic as a dataclass. Needs a key, or --model offline.

./pipeline.sh run devops/docs/examples/quiz.py --param subject=tides --max-cost-usd 1
"""

from dataclasses import dataclass

from pydantic import BaseModel, Field

from pipeline import Message, Pipeline, Request, StepContext, step, typed


class Plan(BaseModel):
    """What the quiz is about."""

    title: str
    topics: list[str] = Field(min_length=1, max_length=5)


@dataclass
class Question:
    """One question of the quiz."""

    text: str
    answer: str
    marks: int


def about(ctx: StepContext, text: str, label: str) -> Request:
    """A question to the model."""
    return Request(ctx.settings["model"], [Message("user", text)], max_tokens=1_000, label=label)


@step()
def plan(ctx: StepContext) -> Plan:
    """One call; what comes back is a Plan, or the step fails."""
    return ctx.ask(about(ctx, f"Up to five topics for a quiz on {ctx.params['subject']}.", "plan"), returns=Plan)


def question(task: StepContext, topic: str) -> Question:
    """The body of one task."""
    return task.ask(about(task, f"One exam question on {topic}, 1 to 4 marks.", "question"), returns=Question)


@step()
def write(ctx: StepContext) -> dict[str, object]:
    """One task a topic."""
    topics = typed(ctx.outputs["plan"], Plan).topics
    return {"questions": ctx.map("question", topics, question, key=str)}


@step()
def total(ctx: StepContext) -> dict[str, object]:
    """What is recorded is JSON; typed() reads it back."""
    questions = [typed(each, Question) for each in ctx.outputs["write"]["questions"]]
    return {"marks": sum(each.marks for each in questions), "questions": len(questions)}


PIPELINE = Pipeline("quiz", steps=[plan, write, total], asks=True)
