"""A real kube-proxy: what brings traffic from the address of a Service to its endpoints.

It writes the iptables of the network that it runs in, so it is for a NetworkNamespace only:

    with NetworkNamespace() as net:
        cluster = Cluster().start(...)
        proxy = KubeProxy(cluster, keeper, net).start()
"""

from __future__ import annotations

import subprocess
import time
import urllib.error
import urllib.request

from . import binaries
from .cluster import Cluster
from .netns import NetworkNamespace
from .processes import Keeper, wait_for

#: Where the control plane takes the addresses of Services from.
SERVICES = "10.0.0.0/24"


class KubeProxy:
    """The proxy of a node that is nothing but an object with the namespace's address."""

    def __init__(self, cluster: Cluster, keeper: Keeper, net: NetworkNamespace) -> None:
        self.cluster = cluster
        self.node = f"proxy-{keeper.id}"
        self._keeper = keeper
        self._net = net

    def start(self, timeout: float = 30.0) -> KubeProxy:
        self._add_node()
        # Without any route a connection fails before iptables can lead it elsewhere.
        self._ip("route", "replace", SERVICES, "dev", "out")
        port, metrics = self._keeper.reserve_port(), self._keeper.reserve_port()
        child = self._keeper.spawn(
            "kube-proxy",
            [
                binaries.binary("kube-proxy", "kube-proxy"),
                f"--kubeconfig={self.cluster.kubeconfig}",
                f"--hostname-override={self.node}",
                "--proxy-mode=iptables",
                "--iptables-min-sync-period=200ms",
                f"--healthz-bind-address=127.0.0.1:{port}",
                f"--metrics-bind-address=127.0.0.1:{metrics}",
                # The machine's limits are none of its business.
                *("--conntrack-max-per-core=0", "--conntrack-min=0"),
                *("--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0"),
            ],
            log=self._keeper.directory / "kube-proxy.log",
        )

        def healthy() -> bool:
            child.check_alive()
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2) as found:
                    return found.status == 200
            except (OSError, urllib.error.URLError):
                return False

        wait_for(healthy, "kube-proxy is healthy", timeout=timeout)
        return self

    def _add_node(self) -> None:
        body = {"metadata": {"name": self.node}}
        status, answer = self.cluster.api("POST", "/api/v1/nodes", body)
        assert status == 201, answer
        self.beat()

    def beat(self) -> None:
        """What a kubelet does: without it the node, and the pods on it, are not ready after 40 s."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        ready = {"type": "Ready", "status": "True", "reason": "Test", "message": ""}
        body = {
            "addresses": [{"type": "InternalIP", "address": self._net.address}],
            "conditions": [{**ready, "lastHeartbeatTime": now, "lastTransitionTime": now}],
        }
        status, answer = self.cluster.api(
            "PATCH",
            f"/api/v1/nodes/{self.node}/status",
            {"status": body},
            content_type="application/merge-patch+json",
        )
        assert status == 200, answer

    @staticmethod
    def _ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True, capture_output=True)
