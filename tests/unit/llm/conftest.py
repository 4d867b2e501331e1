from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from pipeline.llm.anthropic import AnthropicModel
from tests.servers.billing import BillingServer

KEY = "sk-ant-api03-not-a-real-key-0123456789"
MakeModel = Callable[..., AnthropicModel]


@pytest.fixture
def make_model(server: BillingServer) -> Iterator[MakeModel]:
    made: list[AnthropicModel] = []

    def make(
        model_id: str = "claude-sonnet-5-5", base_url: str | None = None, deadline_seconds: float = 20
    ) -> AnthropicModel:
        model = AnthropicModel(
            model_id, api_key=KEY, base_url=base_url or server.url, deadline_seconds=deadline_seconds
        )
        made.append(model)
        return model

    yield make
    for model in made:
        model.close()


@pytest.fixture(scope="session")
def _shared(_running: BillingServer) -> Iterator[AnthropicModel]:
    # Making a client loads the machine's certificates, which takes longer than most tests.
    model = AnthropicModel("claude-sonnet-5-5", api_key=KEY, base_url=_running.url, deadline_seconds=100)
    yield model
    model.close()


@pytest.fixture
def model(_shared: AnthropicModel, server: BillingServer) -> AnthropicModel:
    return _shared
