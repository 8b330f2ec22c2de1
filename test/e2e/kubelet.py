"""What tests of the kubelet API share: kubectl with its exit code, and requests to the node itself."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import os
import pathlib
import socket
import ssl
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

from test.cluster import binaries, wait_for

from .world import World

#: Lets the API server, and nobody else, call in a way that it verifies.
CERTIFIED = {"certificate": {"source": "csr"}}


@dataclasses.dataclass
class Done:
    """A command that has ended."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode(errors="replace")


#: kubectl as people have it: the module that builds it, and what is set in its environment.
CURRENT = ("controlplane", {})
OLDER = ("kubectl-1.32", {})
#: Streams as they were before there were WebSockets for them.
SPDY = (
    "kubectl-1.32",
    {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"},
)
Release = tuple[str, dict[str, str]]


def kubectl_command(
    world: World, *arguments: str, release: Release = CURRENT
) -> tuple[list[str], dict[str, str]]:
    module, more = release
    binary = str(binaries.binary(module, "kubectl"))
    environment = os.environ | {
        "KUBECONFIG": str(world.cluster.kubeconfig),
        "KUBECACHEDIR": str(world.cluster.directory / module),
        **more,
    }
    return [binary, "-n", world.namespace, *arguments], environment


def kubectl(
    world: World,
    *arguments: str,
    input: bytes = b"",
    timeout: float = 60.0,
    release: Release = CURRENT,
) -> Done:
    """Runs kubectl as admin in the world's namespace; never raises for its exit code."""
    command, environment = kubectl_command(world, *arguments, release=release)
    done = subprocess.run(
        command, input=input, capture_output=True, timeout=timeout, env=environment, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr.decode(errors="replace"))


@contextlib.contextmanager
def background(
    world: World, *arguments: str, release: Release = CURRENT
) -> Iterator[subprocess.Popen[bytes]]:
    """kubectl that goes on; it is ended with the block."""
    command, environment = kubectl_command(world, *arguments, release=release)
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def forwarded(world: World, pod: str, port: int, release: Release = CURRENT) -> Iterator[int]:
    """The local port that leads to the pod's."""
    with background(world, "port-forward", f"pod/{pod}", f":{port}", release=release) as process:
        assert process.stdout is not None
        # Forwarding from 127.0.0.1:34567 -> 80
        line = process.stdout.readline().decode()
        assert " -> " in line, line + (process.stderr.read().decode() if process.stderr else "")
        yield int(line.split(" -> ")[0].rsplit(":", 1)[1])


def kubelet_port(world: World, node: str = "") -> int:
    found = world.cluster.get(f"/api/v1/nodes/{node or world.node}")
    return int(found["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"])


def approve(world: World, timeout: float = 20.0) -> str:
    """Approves the daemon's request for a certificate, waits until it is in use; the request's name."""

    def pending() -> str:
        items = world.cluster.get("/apis/certificates.k8s.io/v1/certificatesigningrequests")["items"]
        ours = (i for i in items if i["metadata"]["name"].startswith(f"spillway-{world.installation}-"))
        return next((i["metadata"]["name"] for i in ours if not i["status"].get("conditions")), "")

    name = wait_for(pending, "the daemon asks for a certificate", timeout=timeout)
    world.cluster.kubectl("certificate", "approve", name)
    wait_for(
        lambda: world.daemon.metric("spillway_kubelet_certificate", source="csr") == 1,
        "the certificate is in use",
        timeout=timeout,
    )
    return name


@dataclasses.dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")

    def json(self) -> Any:
        return json.loads(self.body)


class Caller:
    """Talks to a node's kubelet API without the API server."""

    def __init__(
        self,
        address: str,
        port: int,
        *,
        token: str = "",
        certificate: tuple[pathlib.Path, pathlib.Path] | None = None,
        ca: pathlib.Path | None = None,
    ) -> None:
        self.address = address
        self.port = port
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.context = ssl.create_default_context(cafile=str(ca) if ca else None)
        if ca is None:
            self.context.check_hostname = False
            self.context.verify_mode = ssl.CERT_NONE
        if certificate is not None:
            self.context.load_cert_chain(*certificate)

    def ask(self, path: str, method: str = "GET", headers: dict[str, str] | None = None) -> Answer:
        connection = http.client.HTTPSConnection(
            self.address, self.port, context=self.context, timeout=30
        )
        try:
            connection.request(method, path, headers=self._headers | (headers or {}))
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    @contextlib.contextmanager
    def stream(self, path: str) -> Iterator[http.client.HTTPResponse]:
        """An answer that is read while it comes; the connection ends with the block."""
        connection = http.client.HTTPSConnection(
            self.address, self.port, context=self.context, timeout=30
        )
        try:
            connection.request("GET", path, headers=self._headers)
            yield connection.getresponse()
        finally:
            connection.close()

    def handshake(self) -> ssl.SSLSocket:
        raw = socket.create_connection((self.address, self.port), timeout=10)
        return self.context.wrap_socket(raw, server_hostname=self.address)


def token_of(world: World, account: str, *, may: Sequence[tuple[str, str]] = ()) -> str:
    """A token of a new ServiceAccount of the world that may do each (verb, sub-resource of nodes)."""
    path = f"/api/v1/namespaces/{world.namespace}/serviceaccounts"
    status, answer = world.cluster.api("POST", path, {"metadata": {"name": account}})
    assert status == 201, answer
    allow(world, (account, "ServiceAccount"), may)
    status, answer = world.cluster.api("POST", f"{path}/{account}/token", {"spec": {}})
    assert status == 201, answer
    return answer["status"]["token"]


def allow(world: World, who: tuple[str, str], may: Sequence[tuple[str, str]]) -> None:
    """Lets a subject, (name, kind), do each (verb, sub-resource of nodes) as long as the world stands."""
    subject = {"kind": who[1], "name": who[0]}
    if who[1] == "ServiceAccount":
        subject["namespace"] = world.namespace
    else:
        subject["apiGroup"] = "rbac.authorization.k8s.io"
    name = f"{world.namespace}-{who[0].replace(':', '-')}"
    rules = [
        {"apiGroups": [""], "resources": [f"nodes/{what}"], "verbs": [verb]} for verb, what in may
    ]
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    role = {"metadata": {"name": name}, "rules": rules}
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [subject],
    }
    for kind, body in (("clusterroles", role), ("clusterrolebindings", binding)):
        status, answer = world.cluster.api("POST", f"{rbac}/{kind}", body)
        assert status == 201, answer
        world.on_close.append(
            lambda kind=kind: world.cluster.api("DELETE", f"{rbac}/{kind}/{name}")
        )
