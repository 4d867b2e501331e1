"""The names under which a run is told to a collector: one table, and the conventions that it follows. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

#: OpenTelemetry's conventions for generative AI: in development, without releases, so the commit is named.
CONVENTION = "open-telemetry/semantic-conventions-genai@024a4f944a1291fcb627c9c47da69e79868dd15e"

#: What a span is of. The two operations are the convention's.
RUN, STEP, ITEM, ATTEMPT, CALL = "run", "step", "item", "attempt", "call"
RUN_OPERATION, CHAT = "invoke_workflow", "chat"

#: What a value can be.
Value = str | bool | int | float | Sequence[str]

#: Our word → its attributes. Two, where backends follow an older name.
ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "operation": ("gen_ai.operation.name",),
    "workflow": ("gen_ai.workflow.name",),
    "provider": ("gen_ai.provider.name",),
    "asked_model": ("gen_ai.request.model",),
    "model": ("gen_ai.response.model",),
    "stop_reasons": ("gen_ai.response.finish_reasons",),
    "input": ("gen_ai.usage.input_tokens",),
    "output": ("gen_ai.usage.output_tokens",),
    "cache_read": ("gen_ai.usage.cache_read.input_tokens",),
    "cache_write": ("gen_ai.usage.cache_write.input_tokens", "gen_ai.usage.cache_creation.input_tokens"),
    "reasoning": ("gen_ai.usage.reasoning.output_tokens",),
    # What a call cost has a name in a draft only (their pull request 443, commit 972e9e2a).
    "usd": ("gen_ai.usage.cost.amount",),
    "currency": ("gen_ai.usage.cost.currency",),
    "cost_source": ("gen_ai.usage.cost.source",),
    "error": ("error.type",),
    # Only with --otel-content.
    "system": ("gen_ai.system_instructions",),
    "messages": ("gen_ai.input.messages",),
    "answer": ("gen_ai.output.messages",),
    # What no convention names.
    "kind": ("course_pipeline.span",),
    "run": ("course_pipeline.run.id",),
    "run_status": ("course_pipeline.run.status",),
    "resumed": ("course_pipeline.run.resumed",),
    "step": ("course_pipeline.step",),
    "visit": ("course_pipeline.step.visit",),
    "outcome": ("course_pipeline.step.outcome",),
    "item": ("course_pipeline.item",),
    "attempt": ("course_pipeline.attempt",),
    "label": ("course_pipeline.call.label",),
    "seq": ("course_pipeline.call.seq",),
    "try": ("course_pipeline.call.try",),
    "call_outcome": ("course_pipeline.call.outcome",),
    "tier": ("course_pipeline.call.tier",),
    "request_id": ("course_pipeline.call.request_id",),
    "searches": ("course_pipeline.call.web_searches",),
    "cost_state": ("course_pipeline.cost.state",),
    "usd_low": ("course_pipeline.cost.usd_low",),
    "usd_high": ("course_pipeline.cost.usd_high",),
    # Of metrics.
    "modality": ("gen_ai.token.modality",),
}

#: Who bills, as the convention calls it; others are called as --provider calls them.
PROVIDER_NAMES: Mapping[str, str] = {
    "bedrock": "aws.bedrock",
    "bedrock-mantle": "aws.bedrock",
    "vertex": "gcp.vertex_ai",
    "foundry": "azure.ai.inference",
    "aws": "anthropic",
    "google-cloud": "anthropic",
}


class Metric(NamedTuple):
    """One metric: its name, its unit, what it tells; and the bounds of a histogram's buckets."""

    name: str
    unit: str
    text: str
    bounds: Sequence[float] = ()


_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_USD = (0.0001, 0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
#: Our word → the metric.
METRICS: Mapping[str, Metric] = {
    "input": Metric("gen_ai.client.inference.usage.input_tokens", "{token}", "Input tokens, cached ones included."),
    "output": Metric("gen_ai.client.inference.usage.output_tokens", "{token}", "Output tokens."),
    "cache_read": Metric(
        "gen_ai.client.inference.usage.cache_read.input_tokens", "{token}", "Input tokens read from a cache."
    ),
    "cache_write": Metric(
        "gen_ai.client.inference.usage.cache_write.input_tokens", "{token}", "Input tokens written to a cache."
    ),
    "seconds": Metric("gen_ai.client.inference.duration", "s", "How long calls took.", _SECONDS),
    "usd": Metric("gen_ai.client.operation.cost", "USD", "What calls cost, where that is exactly known.", _USD),
    "retries": Metric("course_pipeline.retries", "{try}", "Calls that were tried again, and tasks and steps."),
    "in_flight": Metric("course_pipeline.calls.in_flight", "{call}", "Calls that await an answer."),
    "waiting": Metric("course_pipeline.items.waiting", "{item}", "Items of maps that are not finished."),
}


def named(values: Mapping[str, Value | None]) -> dict[str, Value]:
    """Return what our words say, under the names of the attributes; what is None is left out."""
    return {name: value for word, value in values.items() if value is not None for name in ATTRIBUTES[word]}
