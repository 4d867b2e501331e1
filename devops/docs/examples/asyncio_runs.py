"""Beside an event loop: two runs at once, their events heard in the loop, and a step that awaits. Needs no key.

PYTHONPATH=. .venv/bin/python devops/docs/examples/asyncio_runs.py
"""

import asyncio
import tempfile

from pipeline import Event, Message, Pipeline, Request, StepContext, step


async def download(town: str) -> str:
    """A client of one's own that has to be awaited."""
    await asyncio.sleep(0)
    return f"{town}: rain"


@step()
def weather(ctx: StepContext) -> dict[str, object]:
    """A plain function; what is awaited runs in a loop of its own."""
    return {"weather": asyncio.run(download(ctx.params["town"]))}


@step()
def card(ctx: StepContext) -> dict[str, object]:
    """One call."""
    text = f"A postcard. {ctx.outputs['weather']['weather']}"
    return {"card": ctx.ask(Request(ctx.settings["model"], [Message("user", text)], label="card")).text}


PIPELINE = Pipeline("weather_cards", steps=[weather, card], asks=True)


async def main() -> None:
    """Start both, and count what is heard."""
    loop, heard = asyncio.get_running_loop(), asyncio.Queue[Event]()

    def hear(event: Event) -> None:
        # The run is in a thread of its own; the loop takes the event when it is free.
        loop.call_soon_threadsafe(heard.put_nowait, event)

    with tempfile.TemporaryDirectory() as folder:
        runs = (
            asyncio.to_thread(PIPELINE.run, {"town": town}, store=f"files:{folder}", model="offline", listener=hear)
            for town in ("Oban", "Nairn")
        )
        for result in await asyncio.gather(*runs):
            print(result.status, result.outputs["card"]["card"])
    print(f"{heard.qsize()} events")


if __name__ == "__main__":
    asyncio.run(main())
