"""A daemon that is to write EndpointSlices and may not."""

from __future__ import annotations

from test.cluster import wait_for

from .conftest import Worlds


def test_without_rights_the_daemon_says_so_and_nodes_go_on(make_world: Worlds) -> None:
    world = make_world.bare("fake")
    daemon = world.add_daemon(endpoints={"mode": "direct"}).start()
    wait_for(
        lambda: world.cluster.api("GET", f"/api/v1/nodes/{world.node}")[0] == 200,
        "the node is there",
        timeout=60,
    )
    status, text = daemon.admin("/readyz")
    assert status == 503
    assert "config/deploy/endpoints" in text
    world.create_pod("one", terminationGracePeriodSeconds=0)
    world.wait_ready("one", timeout=60)
