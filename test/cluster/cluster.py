"""A real control plane: etcd, kube-apiserver, scheduler and controller-manager on loopback."""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import select
import shutil
import signal
import ssl
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from . import binaries
from .certificates import Authority, write_key, write_public_key
from .processes import Child, Keeper, ProcessError, wait_for

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = REPOSITORY / "config" / "deploy"

# What of config/deploy a daemon's rights are made of; the Deployment itself is not run by tests.
_RIGHTS_KINDS = (
    "Namespace",
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
)


class ClusterError(RuntimeError):
    """A request or command to the cluster failed."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Cluster:
    """One control plane in a folder of its own. Several stand side by side.

    `extra_args` adds flags by program name, e.g. {"kube-apiserver": ["--audit-policy-file=..."]};
    a later flag wins over one of ours. Without `controllers` only etcd and the API server run, and
    nobody but the test writes: no pod is scheduled and no ServiceAccount made.
    """

    def __init__(
        self,
        *,
        extra_args: Mapping[str, Sequence[str]] | None = None,
        controllers: bool = True,
    ) -> None:
        self._extra_args = extra_args or {}
        self._with_controllers = controllers
        self._keeper: Keeper | None = None
        self._local = threading.local()
        self.directory = pathlib.Path()
        self.server = ""

    # Life

    def start(
        self, directory: str | os.PathLike[str], *, detached: bool = False, timeout: float = 60.0
    ) -> Cluster:
        """Starts everything and returns once pods can be created. `directory` is made, and removed
        by stop() if it was empty or absent. `detached`: go on after this process ends.
        """
        if self._keeper is not None:
            raise ProcessError("this cluster is already started: make another Cluster()")
        for program in binaries.MODULES["controlplane"].programs:
            binaries.binary("controlplane", program)
        self._keeper = Keeper("cluster", pathlib.Path(directory), detached=detached)
        self.directory = self._keeper.directory
        try:
            self._start(timeout)
        except BaseException:
            self._keeper.close()
            self._keeper = None
            raise
        return self

    def _start(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        (self.directory / "logs").mkdir(exist_ok=True)
        self._ports = {
            name: self._require().reserve_port()
            for name in ("apiserver", "etcd", "etcd-peer", "scheduler", "controller-manager")
        }
        self.server = f"https://127.0.0.1:{self._ports['apiserver']}"
        self._make_certificates()
        self._etcd = self._start_etcd()
        self.start_apiserver(timeout=deadline - time.monotonic())
        if self._with_controllers:
            self._start_controllers(deadline)

    def _start_controllers(self, deadline: float) -> None:
        self._scheduler = self._start_client_program("scheduler", "kube-scheduler", [])
        self._controllers = self._start_client_program(
            "controller-manager",
            "kube-controller-manager",
            [
                "--use-service-account-credentials",
                f"--service-account-private-key-file={self._pki / 'sa.key'}",
                f"--root-ca-file={self.ca}",
                f"--cluster-signing-cert-file={self._authority.certificate}",
                f"--cluster-signing-key-file={self._authority.key}",
            ],
        )
        self._wait_until(
            lambda: self.api("GET", "/api/v1/namespaces/default/serviceaccounts/default")[0] == 200,
            "the default ServiceAccount",
            deadline - time.monotonic(),
        )
        self._wait_until(
            lambda: self.api("GET", "/api/v1/namespaces/default/configmaps/kube-root-ca.crt")[0]
            == 200,
            "the kube-root-ca.crt ConfigMap",
            deadline - time.monotonic(),
        )

    def stop(self, *, save_logs_to: pathlib.Path | None = None) -> None:
        """Ends every process and removes the folder; the logs are copied away first if asked."""
        if self._keeper is None:
            return
        if save_logs_to is not None:
            shutil.copytree(self.directory / "logs", save_logs_to, dirs_exist_ok=True)
        self._keeper.close()
        self._keeper = None

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pids(self) -> dict[str, int]:
        """Process ids by program name."""
        return {child.name: child.pid for child in self._require().children}

    @property
    def apiserver(self) -> Child:
        """The API server's process, for tests that pause or kill it."""
        return self._apiserver

    def stop_apiserver(self, *, graceful: bool = False) -> None:
        """Ends the API server: at once, or by SIGTERM, which lets requests in flight finish."""
        if graceful:
            self._apiserver.terminate(timeout=30)
        else:
            self._apiserver.kill()
        self._require().forget(self._apiserver)

    def start_apiserver(self, *, timeout: float = 60.0) -> None:
        """Starts the API server on its port and waits until it is ready."""
        self._apiserver = self._require().spawn(
            "kube-apiserver",
            [binaries.binary("controlplane", "kube-apiserver"), *self._apiserver_flags()],
            log=self._log("kube-apiserver"),
        )
        self._wait_until(lambda: self._is_ready(), "the API server ready", timeout)

    def restart_apiserver(self, *, graceful: bool = False, timeout: float = 60.0) -> None:
        """Stops and starts the API server on the same port; etcd and the rest keep running."""
        self.stop_apiserver(graceful=graceful)
        self.start_apiserver(timeout=timeout)

    # Access

    @property
    def ca(self) -> pathlib.Path:
        """The CA that signed the API server's certificate (PEM)."""
        return self._authority.certificate

    @property
    def kubeconfig(self) -> pathlib.Path:
        """A kubeconfig with all rights (client certificate of system:masters)."""
        return self.directory / "admin.kubeconfig"

    def kubectl(
        self,
        *arguments: str,
        input: str | None = None,
        check: bool = True,
        timeout: float = 60.0,
    ) -> str:
        """Runs the cluster's own kubectl as admin and returns its stdout.

        On failure raises ClusterError with its stderr; with check=False returns stdout anyhow.
        """
        done = subprocess.run(
            [binaries.binary("controlplane", "kubectl"), *arguments],
            input=input,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=os.environ
            | {"KUBECONFIG": str(self.kubeconfig), "KUBECACHEDIR": str(self.directory / "kubectl")},
        )
        if check and done.returncode != 0:
            raise ClusterError(
                f"kubectl {' '.join(arguments)} exited {done.returncode}: {done.stderr.strip()}"
            )
        return done.stdout

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """kubectl apply of objects."""
        self.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(objects))

    def api(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        timeout: float = 30.0,
    ) -> tuple[int, Any]:
        """One request as admin: (status, decoded JSON or text). Ten times cheaper than kubectl.

        `body` is encoded as JSON unless it is bytes. Connections are kept, one per thread.
        Raises OSError if the server cannot be reached.
        """
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        headers = {"Content-Type": content_type} if data is not None else {}
        kept = getattr(self._local, "connection", None)
        if kept is not None and _is_over(kept):
            kept.close()
            kept = self._local.connection = None
        if kept is not None:
            try:
                return _exchange(kept, method, path, data, headers, timeout)
            except (OSError, http.client.HTTPException):
                # The server may have closed it at this moment, or restarted. A request that may
                # have been carried out is not repeated, except where that does no harm.
                kept.close()
                self._local.connection = None
                if method not in ("GET", "HEAD", "PUT", "DELETE"):
                    raise
        connection = self._connect(timeout)
        answer = _exchange(connection, method, path, data, headers, timeout)
        self._local.connection = connection
        return answer

    def get(self, path: str) -> Any:
        """GET that must succeed; raises ClusterError with `.status` otherwise."""
        status, answer = self.api("GET", path)
        if status != 200:
            raise ClusterError(f"GET {path}: {status} {answer}", status)
        return answer

    def metrics(self) -> str:
        """The API server's own metrics (text format)."""
        return self.get("/metrics")

    def reserve_port(self) -> int:
        """A port on 127.0.0.1 that nothing else of the tests is given until stop()."""
        return self._require().reserve_port()

    def issue_serving_cert(
        self, name: str, hosts: Sequence[str] = ("127.0.0.1", "localhost")
    ) -> tuple[pathlib.Path, pathlib.Path]:
        """A serving certificate of the cluster's CA: (certificate, key), PEM files."""
        return self._authority.issue(name, common_name=name, hosts=hosts)

    def issue_client_cert(
        self, name: str, *, common_name: str, organizations: Sequence[str] = ()
    ) -> tuple[pathlib.Path, pathlib.Path]:
        """A client certificate for the user `common_name` in groups `organizations`."""
        return self._authority.issue(name, common_name=common_name, organizations=organizations)

    def spillway_kubeconfig(
        self,
        namespace: str = "spillway-system",
        *,
        server: str | None = None,
        ca: pathlib.Path | None = None,
        name: str = "spillway",
        parts: Sequence[str] = (),
    ) -> pathlib.Path:
        """Applies the rights of config/deploy and returns a kubeconfig that has just those.

        `parts` adds those of folders below it, such as "endpoints". It uses a token file (valid for 24 h) of the ServiceAccount `spillway`. `server` and `ca`
        point it at a gate; `name` tells several kubeconfigs of one cluster apart.
        """
        self.apply(*_rights(namespace, parts))
        token = self.kubectl("create", "token", "spillway", "-n", namespace, "--duration=24h")
        token_file = self.directory / f"{name}.token"
        token_file.write_text(token.strip())
        token_file.chmod(0o600)
        path = self.directory / f"{name}.kubeconfig"
        _write_kubeconfig(
            path, server or self.server, ca or self.ca, {"tokenFile": str(token_file)}, namespace
        )
        return path

    def account_kubeconfig(
        self, account: str, namespace: str, path: pathlib.Path
    ) -> pathlib.Path:
        """Writes a kubeconfig with a token of a ServiceAccount that exists (valid for an hour)."""
        token = self.kubectl("create", "token", account, "-n", namespace)
        path.touch(0o600)
        _write_kubeconfig(path, self.server, self.ca, {"token": token.strip()}, namespace)
        return path

    # Parts

    def _require(self) -> Keeper:
        if self._keeper is None:
            raise ProcessError("the cluster is not running: call start() first")
        return self._keeper

    @property
    def _pki(self) -> pathlib.Path:
        return self.directory / "pki"

    def _log(self, program: str) -> pathlib.Path:
        return self.directory / "logs" / f"{program}.log"

    def _make_certificates(self) -> None:
        self._pki.mkdir(exist_ok=True)
        self._authority = Authority(self._pki, "ca")
        self._front = Authority(self._pki, "front-proxy-ca")
        issue = self._authority.issue
        issue(
            "apiserver",
            common_name="kube-apiserver",
            hosts=["127.0.0.1", "localhost", "10.0.0.1", "kubernetes", "kubernetes.default.svc"],
        )
        issue(
            "kubelet-client",
            common_name="kube-apiserver-kubelet-client",
            organizations=["system:masters"],
        )
        self._front.issue("front-proxy-client", common_name="front-proxy-client")
        write_public_key(write_key(self._pki / "sa.key"), self._pki / "sa.pub")
        for name, user, groups in (
            ("admin", "spillway-test-admin", ["system:masters"]),
            ("scheduler", "system:kube-scheduler", []),
            ("controller-manager", "system:kube-controller-manager", []),
        ):
            certificate, key = issue(name, common_name=user, organizations=groups)
            _write_kubeconfig(
                self.directory / f"{name}.kubeconfig",
                self.server,
                self.ca,
                {"client-certificate": str(certificate), "client-key": str(key)},
                "default",
            )
        self._context = ssl.create_default_context(cafile=str(self.ca))
        self._context.load_cert_chain(self._pki / "admin.crt", self._pki / "admin.key")

    def _start_etcd(self) -> Child:
        client = f"http://127.0.0.1:{self._ports['etcd']}"
        peer = f"http://127.0.0.1:{self._ports['etcd-peer']}"
        return self._require().spawn(
            "etcd",
            [
                binaries.binary("controlplane", "etcd"),
                f"--data-dir={self.directory / 'etcd'}",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
                # Tests throw the data away: a power cut cannot hurt them.
                "--unsafe-no-fsync",
                "--log-level=warn",
                *self._extra_args.get("etcd", ()),
            ],
            log=self._log("etcd"),
        )

    def _apiserver_flags(self) -> list[str]:
        pki = self._pki
        return [
            f"--etcd-servers=http://127.0.0.1:{self._ports['etcd']}",
            "--bind-address=127.0.0.1",
            # Without these the server looks for a default route and dies where there is none, and
            # then complains for ever that an Endpoints object may not name a loopback address.
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--secure-port={self._ports['apiserver']}",
            f"--tls-cert-file={pki / 'apiserver.crt'}",
            f"--tls-private-key-file={pki / 'apiserver.key'}",
            f"--client-ca-file={self.ca}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={pki / 'sa.pub'}",
            f"--service-account-signing-key-file={pki / 'sa.key'}",
            f"--requestheader-client-ca-file={self._front.certificate}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={pki / 'front-proxy-client.crt'}",
            f"--proxy-client-key-file={pki / 'front-proxy-client.key'}",
            f"--kubelet-certificate-authority={self.ca}",
            f"--kubelet-client-certificate={pki / 'kubelet-client.crt'}",
            f"--kubelet-client-key={pki / 'kubelet-client.key'}",
            "--kubelet-preferred-address-types=InternalIP,Hostname",
            # Without it a graceful end waits half a minute for the controllers' watches.
            "--shutdown-watch-termination-grace-period=2s",
            *self._extra_args.get("kube-apiserver", ()),
        ]

    def _start_client_program(self, name: str, program: str, flags: Sequence[str]) -> Child:
        return self._require().spawn(
            program,
            [
                binaries.binary("controlplane", program),
                f"--kubeconfig={self.directory / name}.kubeconfig",
                f"--authentication-kubeconfig={self.directory / name}.kubeconfig",
                f"--authorization-kubeconfig={self.directory / name}.kubeconfig",
                "--bind-address=127.0.0.1",
                f"--secure-port={self._ports[name]}",
                f"--cert-dir={self.directory / 'pki' / name}",
                "--leader-elect=false",
                # The defaults hold a Deployment of hundreds of pods back for half a minute.
                "--kube-api-qps=1000",
                "--kube-api-burst=2000",
                *flags,
                *self._extra_args.get(program, ()),
            ],
            log=self._log(program),
        )

    def _wait_until(self, condition: Any, what: str, timeout: float) -> None:
        def check() -> bool:
            for child in self._require().children:
                child.check_alive()
            try:
                return bool(condition())
            except (OSError, http.client.HTTPException):
                return False

        try:
            wait_for(check, what, timeout=max(timeout, 0.0))
        except TimeoutError as error:
            raise ProcessError(
                f"{error}; the end of {self._apiserver.log}:\n{self._apiserver.log_tail()}"
            ) from None

    def _is_ready(self) -> bool:
        return self.api("GET", "/readyz")[0] == 200

    def _connect(self, timeout: float) -> http.client.HTTPSConnection:
        address = urllib.parse.urlsplit(self.server)
        return http.client.HTTPSConnection(
            address.hostname or "", address.port, context=self._context, timeout=timeout
        )

    def signal_all(self, number: signal.Signals) -> None:
        """Sends a signal to every process of the cluster (SIGSTOP and SIGCONT freeze and thaw)."""
        for child in self._require().children:
            child.send_signal(number)


def _is_over(connection: http.client.HTTPConnection) -> bool:
    """True if the server has closed a connection that waits for the next request."""
    if connection.sock is None:
        return False
    poller = select.poll()
    poller.register(connection.sock, select.POLLIN)
    # Nothing is owed to us: whatever can be read is its end.
    return bool(poller.poll(0))


def _exchange(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    data: bytes | None,
    headers: Mapping[str, str],
    timeout: float,
) -> tuple[int, Any]:
    if connection.sock is not None:
        connection.sock.settimeout(timeout)
    connection.request(method, path, data, dict(headers))
    response = connection.getresponse()
    text = response.read().decode(errors="replace")
    if "json" in response.headers.get("Content-Type", ""):
        return response.status, json.loads(text)
    return response.status, text


def _rights(namespace: str, parts: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The namespace, ServiceAccount and RBAC objects of config/deploy, moved to `namespace`."""
    objects = [
        item
        for folder in (DEPLOY, *(DEPLOY / part for part in parts))
        for path in sorted(folder.glob("*.yaml"))
        for item in yaml.safe_load_all(path.read_text())
        if isinstance(item, dict) and item.get("kind") in _RIGHTS_KINDS
    ]
    if not any(item["kind"] == "ServiceAccount" for item in objects):
        raise ClusterError(f"no ServiceAccount in {DEPLOY}/*.yaml: the daemon's rights stand there")
    default = next((o["metadata"]["name"] for o in objects if o["kind"] == "Namespace"), namespace)
    for item in objects:
        metadata = item["metadata"]
        if item["kind"] == "Namespace" and metadata["name"] == default:
            metadata["name"] = namespace
        elif item["kind"] in ("ServiceAccount", "Role", "RoleBinding"):
            if metadata.get("namespace", default) == default:
                metadata["namespace"] = namespace
        for subject in item.get("subjects", ()):
            if subject.get("namespace") == default:
                subject["namespace"] = namespace
    # The namespace must exist before what lies in it.
    return sorted(objects, key=lambda item: _RIGHTS_KINDS.index(item["kind"]))


def _write_kubeconfig(
    path: pathlib.Path,
    server: str,
    ca: pathlib.Path,
    user: Mapping[str, str],
    namespace: str,
) -> None:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "test", "cluster": {"server": server, "certificate-authority": str(ca)}}
        ],
        "users": [{"name": "test", "user": dict(user)}],
        "contexts": [
            {"name": "test", "context": {"cluster": "test", "user": "test", "namespace": namespace}}
        ],
        "current-context": "test",
    }
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    path.chmod(0o600)
