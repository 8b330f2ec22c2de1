"""The real metrics-server beside a test cluster, for `kubectl top` and autoscalers."""

from __future__ import annotations

import pathlib

from . import binaries
from .cluster import Cluster
from .processes import Keeper

_API = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io"
_SERVICES = "/api/v1/namespaces/kube-system/services"


class MetricsServer:
    """A process beside the control plane; the API server finds it by the external name of a Service."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._keeper: Keeper | None = None

    def start(self, directory: pathlib.Path) -> MetricsServer:
        folder = binaries.binary("metrics-server", "metrics-server").parent
        self._keeper = Keeper("metrics-server", directory)
        self._cluster.kubectl("apply", "-f", str(folder / "rights.yaml"))
        port = self._keeper.reserve_port()
        rights = self._cluster.account_kubeconfig(
            "metrics-server", "kube-system", directory / "rights.kubeconfig"
        )
        kubeconfigs = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
        command = [folder / "metrics-server", *(f"--{name}={rights}" for name in kubeconfigs)]
        command += [f"--cert-dir={directory}", "--bind-address=127.0.0.1", f"--secure-port={port}"]
        command += ["--metric-resolution=10s", "--kubelet-request-timeout=5s"]
        command += ["--kubelet-use-node-status-port"]
        command += ["--kubelet-preferred-address-types=InternalIP"]
        command += [f"--kubelet-certificate-authority={self._cluster.ca}"]
        self._keeper.spawn("metrics-server", command, log=directory / "metrics-server.log")
        self._announce(port)
        return self

    def _announce(self, port: int) -> None:
        named = {"name": "metrics-server", "namespace": "kube-system"}
        service = {"metadata": named, "spec": {"type": "ExternalName", "externalName": "localhost"}}
        status, answer = self._cluster.api("POST", _SERVICES, service)
        assert status == 201, answer
        spec = {
            "service": {**named, "port": port},
            "group": "metrics.k8s.io",
            "version": "v1beta1",
            "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
        }
        body = {"metadata": {"name": "v1beta1.metrics.k8s.io"}, "spec": spec}
        status, answer = self._cluster.api("POST", _API.rsplit("/", 1)[0], body)
        assert status == 201, answer

    def stop(self) -> None:
        if self._keeper is None:
            return
        self._cluster.api("DELETE", _API)
        self._cluster.api("DELETE", f"{_SERVICES}/metrics-server")
        self._keeper.close()
        self._keeper = None
