"""A graph: two readers side by side, a join that waits for both, and a loop until they are content. Needs no key.

./pipeline.sh run devops/docs/examples/review.py:PIPELINE --param wanted=3
"""

from pipeline import Outcome, Pipeline, StepContext, step


@step()
def draft(ctx: StepContext) -> Outcome:
    """Every pass through the loop is a new visit: draft#1, draft#2 and so on."""
    length = ctx.context.get("length", 0) + 1
    return Outcome({"length": length}, context={"length": length})


@step()
def facts(ctx: StepContext) -> Outcome:
    """A reader; what it finds goes into the context key that the other reader sets too."""
    return Outcome({}, context={"remarks": ["facts are fine"]})


@step()
def style(ctx: StepContext) -> Outcome:
    """The other reader."""
    short = ctx.context["length"] < ctx.params["wanted"]
    return Outcome({}, context={"remarks": ["too short"] if short else []})


@step()
def decide(ctx: StepContext) -> Outcome:
    """The label chooses the edge: `again` goes back, anything else goes on."""
    remarks = ctx.context["remarks"]
    return Outcome({"remarks": remarks}, label="again" if "too short" in remarks else "go")


@step()
def done(ctx: StepContext) -> dict[str, object]:
    """The end."""
    return {"length": ctx.context["length"]}


PIPELINE = Pipeline(
    "review",
    steps=[draft, facts, style, decide, done],
    edges=[
        ("draft", "facts"),
        ("draft", "style"),
        ("facts", "decide"),
        ("style", "decide"),
        ("decide", "draft", "again"),
        ("decide", "done"),
    ],
    joins={"decide": "all"},
    reducers={"remarks": lambda first, second: [*first, *second]},
)
