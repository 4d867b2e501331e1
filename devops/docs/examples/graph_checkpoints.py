"""Checkpoints of graph runs: look at a run at a node, try another way from there, take over another system's."""

import json
import sys

from pipeline import CheckpointStore, Outcome, Pipeline, StepContext, open_store, step


@step(effect="pure")
def outline(ctx: StepContext) -> Outcome:
    """Decide the title, for all the nodes after this one."""
    return Outcome({"parts": 2}, context={"title": f"{ctx.params['topic']}, briefly"})


@step(effect="read")
def draft(ctx: StepContext) -> dict:
    """Write as many parts as the outline says."""
    return {"text": f"{ctx.context['title']}: {ctx.outputs['outline']['parts']} parts"}


@step(effect="pure")
def review(ctx: StepContext) -> dict:
    """Count what was written."""
    return {"letters": len(ctx.outputs["draft"]["text"])}


PIPELINE = Pipeline("brief", [outline, draft, review])


def main(folder: str) -> None:
    """Run it, fork it with another title, and go on from a document of another system."""
    store = open_store(f"files:{folder}")
    checkpoints = CheckpointStore(store)
    run = PIPELINE.run({"topic": "Tides"}, store=store).run_id
    print([row["nodeId"] for row in checkpoints.list("brief", run_id=run)])

    at_outline = checkpoints.load(run, "outline")
    print(at_outline.state["scratch"], at_outline.pendingEdges)

    child = checkpoints.fork(at_outline.id, {"scratch": {"title": "Tides, at length"}})
    print(PIPELINE.resume(child, store=store).outputs["draft"]["text"])

    document = json.loads(json.dumps(at_outline.to_json()))
    document |= {"id": "1f3c9a52-8a5e-4c1e-9a43-2f5b8f0c7d11", "runId": "theirs"}
    document["state"]["scratch"]["title"] = "Moons"
    checkpoints.save(document)
    taken = checkpoints.adopt(document["id"], PIPELINE)
    print(PIPELINE.resume(taken, store=store).outputs["draft"]["text"])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "devops/checkpoints")
