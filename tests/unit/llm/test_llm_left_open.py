"""A model that nobody closed leaves no connection behind."""

from __future__ import annotations

import gc
import warnings

from pipeline.llm.anthropic import AnthropicModel
from pipeline.llm.base import Message, Request
from tests.servers.billing import BillingServer
from tests.unit.llm.conftest import KEY


def test_model_that_is_dropped_closes_its_connections(server: BillingServer) -> None:
    model = AnthropicModel("claude-sonnet-5-5", api_key=KEY, base_url=server.url)
    assert model.complete(Request("claude-sonnet-5-5", [Message("user", "Why?")])).complete
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del model
        gc.collect()
    assert [str(warning.message) for warning in caught if warning.category is ResourceWarning] == []
