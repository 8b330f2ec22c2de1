"""Fixtures for tests that need a control plane, container engines or a broken connection.

`cluster` and `engine` are shared by a whole session: a test works in a `namespace` of its own and
removes what it makes. A test that breaks or counts things takes one of its own from `new_cluster`
or `new_engine`. Logs of a session with failures are kept in build/test-logs.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from .cluster import REPOSITORY, Cluster
from .dockerd import Engine
from .gate import Gate
from .processes import Keeper

LOGS = REPOSITORY / "build" / "test-logs"


@pytest.fixture(scope="session")
def short_tmp() -> Iterator[pathlib.Path]:
    """A folder with a path short enough for unix sockets."""
    keeper = Keeper("scratch", pathlib.Path(tempfile.mkdtemp(prefix="spw-")))
    yield keeper.directory
    keeper.close()


def _logs(request: pytest.FixtureRequest, name: str) -> pathlib.Path | None:
    """Where to keep logs, if a test has failed so far."""
    return LOGS / f"{os.getpid()}-{name}" if request.session.testsfailed else None


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, short_tmp: pathlib.Path) -> Iterator[Cluster]:
    """The session's control plane."""
    shared = Cluster().start(short_tmp / "cluster")
    yield shared
    shared.stop(save_logs_to=_logs(request, "cluster"))


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest, short_tmp: pathlib.Path) -> Iterator[Engine]:
    """The session's Docker engine; it has the image busybox:test."""
    shared = Engine().start(short_tmp / "engine")
    shared.import_busybox_image("busybox:test")
    yield shared
    shared.stop(save_logs_to=_logs(request, "engine"))


@pytest.fixture
def new_cluster(
    request: pytest.FixtureRequest, short_tmp: pathlib.Path
) -> Iterator[Callable[..., Cluster]]:
    """new_cluster(**arguments of Cluster) starts one for this test alone."""
    with contextlib.ExitStack() as stack:

        def make(**arguments: Any) -> Cluster:
            name = f"c{uuid.uuid4().hex[:6]}"
            made = Cluster(**arguments).start(short_tmp / name)
            stack.callback(lambda: made.stop(save_logs_to=_logs(request, name)))
            return made

        yield make


@pytest.fixture
def new_engine(
    request: pytest.FixtureRequest, short_tmp: pathlib.Path
) -> Iterator[Callable[..., Engine]]:
    """new_engine(images=("busybox:test",), **arguments of Engine): one for this test alone."""
    with contextlib.ExitStack() as stack:

        def make(images: Sequence[str] = ("busybox:test",), **arguments: Any) -> Engine:
            name = f"e{uuid.uuid4().hex[:6]}"
            made = Engine(**arguments).start(short_tmp / name)
            stack.callback(lambda: made.stop(save_logs_to=_logs(request, name)))
            for image in images:
                made.import_busybox_image(image)
            return made

        yield make


@pytest.fixture
def gate(short_tmp: pathlib.Path) -> Iterator[Callable[[Cluster | Engine | pathlib.Path], Gate]]:
    """gate(target) puts a gate in front of a cluster, an engine, or a unix socket.

    The test fails if a match or a function of one of its rules threw.
    """
    made: list[Gate] = []

    def make(target: Cluster | Engine | pathlib.Path) -> Gate:
        if isinstance(target, Cluster):
            made.append(Gate.tls(target))
        else:
            upstream = target.socket if isinstance(target, Engine) else target
            made.append(Gate.unix(upstream, short_tmp / f"g{uuid.uuid4().hex[:6]}.sock"))
        return made[-1]

    yield make
    for one in made:
        one.close()
    errors = [error for one in made for error in one.errors]
    assert not errors, "a rule of a gate threw:\n" + "\n".join(errors)


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace of this test alone in the session's cluster."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    status, answer = cluster.api("POST", "/api/v1/namespaces", body)
    assert status == 201, answer
    yield name
    cluster.api("DELETE", f"/api/v1/namespaces/{name}")
