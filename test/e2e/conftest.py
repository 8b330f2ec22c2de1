"""Fixtures of the tests that run the real daemon on a real control plane."""

from __future__ import annotations

import pathlib
import shutil
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from test.cluster import Cluster, Engine, Gate, Keeper
from test.cluster.pytest_plugin import LOGS

from .backends import Backend, DockerBackend, FakeBackend
from .daemon import BINARY
from .fake_cloud import FakeCloud
from .world import World, start

KINDS = ("fake", "docker")

_failed = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Any:
    report = yield
    if report.failed:
        item.stash[_failed] = True
    return report


@pytest.fixture(scope="session", autouse=True)
def binary() -> pathlib.Path:
    """The daemon's program."""
    assert BINARY.exists(), f"{BINARY} is missing: run `make build`, or set SPILLWAY_BINARY"
    return BINARY


@pytest.fixture(scope="session")
def rights(cluster: Cluster) -> pathlib.Path:
    """A kubeconfig with the rights of config/deploy, made once: kubectl is slow."""
    return cluster.spillway_kubeconfig()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """The provider's type; a test that asks for it runs once for each."""
    return request.param


class Worlds:
    """Makes worlds, and ends those that were made."""

    def __init__(
        self,
        cluster: Cluster,
        rights: pathlib.Path,
        short_tmp: pathlib.Path,
        engine: Callable[[], Engine],
    ) -> None:
        self._cluster = cluster
        self._rights = rights
        self._short_tmp = short_tmp
        self._engine = engine
        self.made: list[World] = []

    def bare(
        self,
        *kinds: str,
        cluster: Cluster | None = None,
        engine: Engine | None = None,
        host: dict[str, Any] | None = None,
        cloud: dict[str, Any] | None = None,
        rights: pathlib.Path | None = None,
        **options: Any,
    ) -> World:
        """A world without a daemon. `host` and `cloud` go to the docker host and the fake cloud."""
        directory = self._short_tmp / f"w{uuid.uuid4().hex[:6]}"
        keeper = Keeper("e2e", directory)
        try:
            world = World(cluster or self._cluster, rights or self._rights, keeper, **options)
        except BaseException:
            keeper.close()
            raise
        self.made.append(world)
        for kind in kinds or ("fake",):
            world.backends.append(self._backend(kind, world, engine, host or {}, cloud or {}))
        return world

    def _backend(
        self,
        kind: str,
        world: World,
        engine: Engine | None,
        host: dict[str, Any],
        cloud: dict[str, Any],
    ) -> Backend:
        directory = world.keeper.directory
        listen = directory / f"{kind}-gate.sock"
        if kind == "docker":
            box = engine or self._engine()
            return DockerBackend(box, Gate.unix(box.socket, listen), **host)
        fake = FakeCloud(world.keeper, **cloud).start()
        return FakeBackend(fake, Gate.unix(fake.socket, listen))

    def __call__(self, *kinds: str, daemon: dict[str, Any] | None = None, **options: Any) -> World:
        """A world whose daemon is ready. `daemon`: options of make_config."""
        return start(self.bare(*kinds, **options), **(daemon or {}))

    def end(self, failed: bool, name: str) -> None:
        """Ends all worlds; those of a test that passed must end without a trace."""
        problems: list[BaseException] = []
        for world in self.made:
            try:
                if not failed:
                    world.finish()
            except (AssertionError, TimeoutError) as error:
                problems.append(error)
            if failed or problems:
                _keep_logs(world, name)
            world.discard()
        self.made.clear()
        if problems:
            raise problems[0]


def _keep_logs(world: World, name: str) -> None:
    target = LOGS / f"e2e-{name}-{world.id}"
    target.mkdir(parents=True, exist_ok=True)
    for pattern in ("*.log", "*.yaml"):
        for file in world.keeper.directory.glob(pattern):
            shutil.copy(file, target)
    print(f"logs are in {target}")
    for daemon in world.daemons:
        print(f"---- the end of {daemon.log.name}\n{daemon.child.log_tail(25)}")


def _safe(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name)[:100]


@pytest.fixture
def make_world(
    request: pytest.FixtureRequest,
    cluster: Cluster,
    rights: pathlib.Path,
    short_tmp: pathlib.Path,
    new_cluster: Any,
    new_engine: Any,
) -> Iterator[Worlds]:
    """make_world("fake" | "docker", ...): a world with a daemon that is ready.

    Asks for the other factories so that what they have made for a test ends after its worlds.
    """
    del new_cluster, new_engine
    worlds = Worlds(cluster, rights, short_tmp, lambda: request.getfixturevalue("engine"))
    yield worlds
    worlds.end(request.node.stash.get(_failed, False), _safe(request.node.name))


@pytest.fixture
def world(make_world: Worlds, kind: str) -> World:
    """A world of each kind."""
    return make_world(kind)


@pytest.fixture(scope="module")
def lasting_worlds(
    request: pytest.FixtureRequest,
    cluster: Cluster,
    rights: pathlib.Path,
    short_tmp: pathlib.Path,
) -> Iterator[dict[str, tuple[Worlds, World]]]:
    """Worlds by kind that the tests of a module share, so that each need not start its own."""
    kept: dict[str, tuple[Worlds, World]] = {}
    yield kept
    for worlds, _ in kept.values():
        worlds.end(False, _safe(request.node.name))


@pytest.fixture
def lasting_world(
    request: pytest.FixtureRequest,
    cluster: Cluster,
    rights: pathlib.Path,
    short_tmp: pathlib.Path,
    lasting_worlds: dict[str, tuple[Worlds, World]],
    kind: str,
) -> Iterator[World]:
    """The module's world of a kind; cleared after each test, and made anew after a failed one."""
    if kind not in lasting_worlds:
        worlds = Worlds(cluster, rights, short_tmp, lambda: request.getfixturevalue("engine"))
        # Several stand at the same time, and a lease has one holder.
        lasting_worlds[kind] = (worlds, worlds(kind, installation=f"lasting-{kind}"))
    worlds, world = lasting_worlds[kind]
    yield world
    failed = request.node.stash.get(_failed, False)
    try:
        if not failed:
            failed = True
            world.api.clear()
            world.backend.gate.clear()
            world.clear()
            failed = False
    finally:
        if failed:
            del lasting_worlds[kind]
            worlds.end(True, _safe(request.node.name))
