"""The models the test server knows."""

from __future__ import annotations

from typing import Any


def _model(
    name: str, lifecycle: str = "active", deprecated: str | None = None, retires: str | None = None
) -> dict[str, Any]:
    return {
        "type": "model",
        "id": name,
        "display_name": name.replace("-", " ").title(),
        "created_at": "2026-08-01T00:00:00Z",
        "lifecycle": lifecycle,
        "deprecated_at": deprecated,
        "retires_at": retires,
        "max_input_tokens": 1_000_000,
        "max_tokens": 128_000,
    }


MODELS: dict[str, dict[str, Any]] = {
    item["id"]: item
    for item in (
        _model("claude-sonnet-5-5"),
        _model("claude-haiku-5-5"),
        _model("claude-opus-5-5"),
        _model("claude-opus-4-5", "deprecated", "2026-06-01T00:00:00Z", "2027-01-22T00:00:00Z"),
        _model("claude-sonnet-4-20250514", "retired", "2025-11-01T00:00:00Z", "2026-05-14T00:00:00Z"),
    )
}
