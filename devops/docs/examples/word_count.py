"""Count the words of some texts: two steps, one durable task a text. Needs no model and no key.

./pipeline.sh run devops/docs/examples/word_count.py:PIPELINE --param 'texts={"haiku": "an old silent pond"}'
"""

from pipeline import Pipeline, StepContext, step


@step()
def count(ctx: StepContext) -> dict[str, object]:
    """One task a text; those that are finished are not run again."""
    texts = ctx.params["texts"]
    counts = ctx.map("text", sorted(texts), lambda task, name: len(texts[name].split()), key=str)
    return {"words": dict(zip(sorted(texts), counts, strict=True))}


@step()
def total(ctx: StepContext) -> dict[str, object]:
    """Reads what the step before it gave."""
    return {"total": sum(ctx.outputs["count"]["words"].values())}


PIPELINE = Pipeline("word_count", steps=[count, total])
