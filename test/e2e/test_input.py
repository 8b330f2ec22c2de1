"""What users write: environments, names, copied manifests, and configurations with faults."""

from __future__ import annotations

import json
import pathlib
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from test.cluster import Cluster, Keeper, free_port, wait_for

from .backends import FOREVER
from .conftest import Worlds
from .daemon import BINARY, Daemon, make_config, node_profile
from .world import ADDRESSES, STATE, World, phase

VALUES = {
    "PLAIN": "value",
    "EMPTY": "",
    "SPACES": "  two  spaces  ",
    "NEWLINES": "first\nsecond\r\nthird\n",
    "QUOTES": "\"double\" 'single' `back` \\ backslash",
    "DOLLAR": "$HOME ${HOME} $$ $",
    "UNICODE": "grün 日本語 🚀 \u00a0",
    "EQUALS": "a=b=c",
    "JSON": '{"a": [1, "two"]}',
    "TAB": "\t",
    "dotted.name-with_all": "yes",
    "_under": "1",
    # Allowed since Kubernetes 1.34.
    "of words, and 'quotes'!": "odd",
    "LONG": "x" * 20_000,
}


def test_an_environment_arrives_byte_for_byte(make_world: Worlds) -> None:
    world = make_world("docker")
    path = f"/api/v1/namespaces/{world.namespace}"
    config_map = {"metadata": {"name": "cm"}, "data": {"FROM_MAP": "map\n'$(PLAIN)'"}}
    secret = {"metadata": {"name": "s"}, "stringData": {"K": "s3cr€t\n", "SECOND": "2"}}
    assert world.cluster.api("POST", f"{path}/configmaps", config_map)[0] == 201
    assert world.cluster.api("POST", f"{path}/secrets", secret)[0] == 201
    env: list[dict[str, Any]] = [{"name": k, "value": v} for k, v in VALUES.items()]
    env += [
        {"name": "REFERENCE", "value": "<$(PLAIN)>"},
        {"name": "ESCAPED", "value": "$$(PLAIN)"},
        {"name": "UNKNOWN", "value": "$(NOBODY)"},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "K"}}},
        {
            "name": "ABSENT",
            "valueFrom": {"configMapKeyRef": {"name": "none", "key": "k", "optional": True}},
        },
    ]
    uid = world.create_pod(
        "env",
        container={
            "command": ["sh", "-c", FOREVER],
            "args": ["$(PLAIN)", "$$(PLAIN)"],
            "env": env,
            "envFrom": [
                {"configMapRef": {"name": "cm"}},
                {"secretRef": {"name": "s"}, "prefix": "P_"},
            ],
        },
    )
    world.wait_ready("env")
    found = world.backend.container_of(uid)
    expected = {
        **VALUES,
        "DOLLAR": "$HOME ${HOME} $ $",
        "FROM_MAP": "map\n'$(PLAIN)'",
        "P_K": "s3cr€t\n",
        "P_SECOND": "2",
        "REFERENCE": "<value>",
        "ESCAPED": "$(PLAIN)",
        "UNKNOWN": "$(NOBODY)",
        "KEY": "s3cr€t\n",
    }
    given = dict(entry.split("=", 1) for entry in found["Config"]["Env"])
    assert {key: given.get(key) for key in expected} == expected
    assert "ABSENT" not in given
    assert found["Config"]["Cmd"] == ["value", "$(PLAIN)"]
    # And so the process itself sees it. Its log would not do: the engine may forget the end of a long line.
    engine = f"unix://{world.backend.engine.socket}"
    command = ["docker", "--host", engine, "exec", found["Id"], "cat", "/proc/1/environ"]
    printed = subprocess.run(command, capture_output=True, check=True).stdout
    seen = dict(e.split("=", 1) for e in printed.decode().split("\0") if "=" in e)
    assert {key: seen.get(key) for key in expected} == expected


def test_long_names_and_equal_names_in_many_namespaces(make_world: Worlds) -> None:
    world = make_world("docker")
    others = [f"{world.namespace}-t{i}" for i in range(3)]
    for name in others:
        body = {"metadata": {"name": name}}
        assert world.cluster.api("POST", "/api/v1/namespaces", body)[0] == 201
        accounts = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        wait_for(lambda path=accounts: world.cluster.api("GET", path)[0] == 200, "the namespace")
    longest = ".".join(["a" * 61, "b" * 63, "c" * 63, "d" * 63])
    assert len(longest) == 253
    container_63 = "m" * 63
    try:
        uids = {}
        for place in [world.namespace, *others]:
            env = [{"name": "WHERE", "value": place}]
            uids[place] = world.create_pod("same", container={"env": env}, namespace=place)
        long = world.create_pod(longest, container={"name": container_63})
        for place in uids:
            world.wait_ready("same", namespace=place)
        pod = world.wait_ready(longest)
        assert pod["status"]["containerStatuses"][0]["name"] == container_63
        world.assert_one_instance_each(*uids.values(), long)
        for place, uid in uids.items():
            assert f"WHERE={place}" in world.backend.container_of(uid)["Config"]["Env"]
        # One tenant's pod goes; the others stay.
        world.delete_pod("same", namespace=others[0])
        world.wait_gone("same", namespace=others[0])
        left = [uid for place, uid in uids.items() if place != others[0]]
        world.assert_one_instance_each(*left, long)
    finally:
        for name in others:
            world.cluster.api("DELETE", f"/api/v1/namespaces/{name}")
    for name in others:
        world.wait_gone("same", namespace=name)


def test_annotations_that_were_copied_from_another_pod_are_ignored(lasting_world: World) -> None:
    world = lasting_world
    first = world.create_pod("original")
    pod = world.wait_ready("original")
    copied = {
        key: value
        for key, value in pod["metadata"]["annotations"].items()
        if key.startswith("state.spillway.dev/")
    }
    assert STATE in copied
    copied.setdefault(ADDRESSES, '{"80":"192.0.2.1:1"}')
    second = world.create_pod("copy", annotations=copied)
    world.wait_ready("copy")
    assert world.state_of("copy")["uid"] == second
    assert world.state_of("copy")["tag"] != world.state_of("original")["tag"]
    world.assert_one_instance_each(first, second)
    world.assert_made_once([first, second])
    world.delete_pod("copy")
    world.wait_gone("copy")
    wait_for(lambda: len(world.tags()) == 1, "one instance is left")
    world.assert_one_instance_each(first)


def test_state_of_an_unknown_version_means_neither_buy_nor_terminate(make_world: Worlds) -> None:
    world = make_world("fake")
    uid = world.create_pod("newer")
    world.wait_ready("newer")
    world.daemon.kill9()
    state = world.state_of("newer")
    note = json.dumps({**state, "v": 99})
    patch = json.dumps({"metadata": {"annotations": {STATE: note}}}).encode()
    kind = "application/merge-patch+json"
    assert world.cluster.api("PATCH", world.pods_path("newer"), patch, content_type=kind)[0] == 200
    before = world.backend.cloud.audit()["creates"]
    world.daemon.restart()
    wait_for(
        lambda: any(e["reason"] == "UnreadableState" for e in world.events(uid)), "an event says so"
    )
    assert world.backend.cloud.audit()["creates"] == before
    world.assert_one_instance_each(uid)
    assert phase(world.pod("newer")) == "Running"
    # With the true state the pod is served again after a restart.
    note = json.dumps(state)
    patch = json.dumps({"metadata": {"annotations": {STATE: note}}}).encode()
    assert world.cluster.api("PATCH", world.pods_path("newer"), patch, content_type=kind)[0] == 200
    world.daemon.kill9()
    world.daemon.restart()


# The program's own input


FIVE_FAULTS = """\
apiVersion: spillway.dev/v1
instalation: {}
nodes:
  - name: Not_A_Name
    capacity: {cpu: lots}
providers:
  - name: one
    type: faek
placement:
  startDeadline: soon
"""


def test_five_faults_of_a_configuration_are_told_in_one_go(
    tmp_path: pathlib.Path, cluster: Cluster
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(FIVE_FAULTS)
    done = subprocess.run(
        [BINARY, "run", "--config", file, "--kubeconfig", cluster.kubeconfig],
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.returncode == 2
    told = done.stderr
    for line, words in (
        (2, ("instalation", "installation")),
        (4, ("nodes[0].name", "Not_A_Name")),
        (5, ("nodes[0].capacity", "lots")),
        (8, ("providers[0].type", "faek", "fake")),
        (10, ("placement.startDeadline", "soon")),
    ):
        (found,) = [text for text in told.splitlines() if f"bad.yaml:{line}:" in text]
        for word in words:
            assert word in found, found


def test_a_node_name_for_several_profiles_is_refused(
    tmp_path: pathlib.Path, cluster: Cluster
) -> None:
    providers = [{"name": "fake", "type": "fake"}]
    config = make_config("x", [node_profile("a"), node_profile("b")], providers, admin_port=0)
    file = tmp_path / "two.yaml"
    file.write_text(json.dumps(config))
    command = [BINARY, "run", "--config", file, "--kubeconfig", cluster.kubeconfig]
    done = subprocess.run(
        [*command, "--node-name", "c"], capture_output=True, text=True, timeout=20
    )
    assert done.returncode == 2
    assert "--node-name" in done.stderr


@pytest.fixture
def lone_daemon(short_tmp: pathlib.Path) -> Any:
    """lone_daemon(kubeconfig): a daemon with a fake cloud in its process, not yet started."""
    made: list[tuple[Keeper, Daemon]] = []

    def make(kubeconfig: pathlib.Path) -> Daemon:
        name = f"lone{free_port()}"
        keeper = Keeper("e2e", short_tmp / name)
        config = make_config(
            name,
            [node_profile(name)],
            [{"name": "fake", "type": "fake"}],
            admin_port=keeper.reserve_port(),
        )
        made.append((keeper, Daemon(keeper, "daemon", config, kubeconfig)))
        return made[-1][1]

    yield make
    for keeper, _ in made:
        keeper.close()


def refused_kubeconfig(
    cluster: Cluster, path: pathlib.Path, user: dict[str, str], ca: pathlib.Path | None = None
) -> pathlib.Path:
    entry = {"server": cluster.server, "certificate-authority": str(ca or cluster.ca)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": entry}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(document))
    return path


def keeps_trying(daemon: Daemon, *words: str) -> None:
    """It logs what is wrong, more than once, and neither crashes nor claims to be ready."""
    daemon.start()

    def told() -> bool:
        entries = [*daemon.log_lines(level="warning"), *daemon.log_lines(level="error")]
        good = [e for e in entries if all(word in json.dumps(e).lower() for word in words)]
        return len(good) >= 2

    try:
        wait_for(told, f"the log speaks of {words} twice", timeout=20)
    except TimeoutError as error:
        raise TimeoutError(f"{error}:\n{daemon.child.log_tail()}") from None
    assert daemon.running
    assert daemon.admin("/readyz")[0] == 503
    assert daemon.admin("/healthz")[0] == 200
    code, spent = daemon.sigterm()
    assert code == 0
    assert spent < 10


def test_a_user_without_rights_is_told_and_tried_again(
    cluster: Cluster, tmp_path: pathlib.Path, lone_daemon: Callable[..., Daemon]
) -> None:
    certificate, key = cluster.issue_client_cert("nobody", common_name="nobody")
    user = {"client-certificate": str(certificate), "client-key": str(key)}
    kubeconfig = refused_kubeconfig(cluster, tmp_path / "k", user)
    keeps_trying(lone_daemon(kubeconfig), "forbidden", "rbac")


def test_a_token_that_is_wrong_is_told_and_tried_again(
    cluster: Cluster, tmp_path: pathlib.Path, lone_daemon: Callable[..., Daemon]
) -> None:
    kubeconfig = refused_kubeconfig(cluster, tmp_path / "k", {"token": "not-a-token-9c1f"})
    daemon = lone_daemon(kubeconfig)
    keeps_trying(daemon, "unauthorized")
    assert "not-a-token-9c1f" not in daemon.log.read_text()


def test_a_server_of_another_ca_is_told_and_tried_again(
    cluster: Cluster, tmp_path: pathlib.Path, lone_daemon: Callable[..., Daemon]
) -> None:
    certificate = tmp_path / "other.crt"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-days", "2"),
            *("-subj", "/CN=another", "-keyout", tmp_path / "other.key", "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    kubeconfig = refused_kubeconfig(cluster, tmp_path / "k", {"token": "t"}, certificate)
    keeps_trying(lone_daemon(kubeconfig), "certificate")
