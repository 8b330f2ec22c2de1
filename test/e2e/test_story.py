"""The whole burst on the real control plane: out when training comes, and home again."""

from __future__ import annotations

import pytest

from test.cluster import Cluster
from test.cluster.cluster import REPOSITORY

from .conftest import Worlds
from .story import OFFERS, Story


def test_the_service_that_the_readme_shows_is_accepted(cluster: Cluster) -> None:
    manifest = REPOSITORY / "config" / "pods" / "burst.yaml"
    said = cluster.kubectl("apply", "--dry-run=server", "-f", str(manifest))
    assert [line.split()[0].partition("/")[0] for line in said.splitlines()] == [
        "priorityclass.scheduling.k8s.io",
        "deployment.apps",
        "poddisruptionbudget.policy",
    ]


@pytest.mark.timeout(600)
def test_inference_leaves_for_training_and_comes_home(make_world: Worlds) -> None:
    world = make_world.bare("fake", cloud={"offers": OFFERS, "bootTime": "2s"})
    story = Story(world)
    story.tell(outage=10)
    picture = story.picture()
    assert picture.startswith("<svg ") and picture.rstrip().endswith("</svg>")
    assert picture.count("<polyline") == 3
