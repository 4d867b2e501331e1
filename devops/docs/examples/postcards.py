"""Write a postcard from each town, then choose the best: paid calls, each made once. Needs a key, or --model offline.

./pipeline.sh run devops/docs/examples/postcards.py:PIPELINE --param 'towns=["Oban","Nairn"]' --max-cost-usd 1
"""

from pipeline import Message, Pipeline, Request, StepContext, step


def ask(ctx: StepContext, text: str, label: str) -> str:
    """The model's answer; recorded, so it is free when this is run again."""
    request = Request(ctx.settings.get("model", ""), [Message("user", text)], max_tokens=500, label=label)
    return ctx.ask(request).text


@step()
def write(ctx: StepContext) -> dict[str, object]:
    """One task a town, some of them at once."""
    towns = ctx.params["towns"]
    cards = ctx.map("card", towns, lambda task, town: ask(task, f"A postcard from {town}.", "card"), key=str)
    return {"cards": dict(zip(towns, cards, strict=True))}


@step(saves=["best"])
def choose(ctx: StepContext) -> dict[str, object]:
    """One call; its answer is kept as an artifact."""
    best = ask(ctx, f"Which of these is best? {dict(ctx.outputs['write']['cards'])}", "choice")
    return {"best": ctx.save("best", best)}


PIPELINE = Pipeline("postcards", steps=[write, choose], asks=True)
