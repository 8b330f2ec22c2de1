"""config/alerts and config/dashboards: each rule is right, names what exists, and leads to an entry of the runbook."""

from __future__ import annotations

import functools
import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from test.cluster.cluster import REPOSITORY
from test.cluster.prometheus import Prometheus, promtool

from .conftest import Worlds

ALERTS = REPOSITORY / "config" / "alerts"
DASHBOARDS = sorted((REPOSITORY / "config" / "dashboards").glob("*.json"))
RULES = sorted(ALERTS.glob("*.rules.yaml"))
RUNBOOK = "vk-provider/docs/runbook.md"

_OURS = re.compile(r"\bspillway_\w+")
_NAMED = re.compile(r'"(spillway_\w+)"')
_SERIES = re.compile(r"\bspillway_\w+\{([^}]*)\}")
_MATCHER = re.compile(r'(\w+)\s*(?:=|!=|=~|!~)\s*"([^"]*)"')
_SUFFIX = re.compile(r'config_\.metric_prefix \+ "(\w+)"')


def alerts() -> Iterator[dict[str, Any]]:
    for path in RULES:
        for group in yaml.safe_load(path.read_text())["groups"]:
            yield from (rule for rule in group["rules"] if "alert" in rule)


def panels() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in DASHBOARDS:
        for panel in json.loads(path.read_text())["panels"]:
            yield f"{path.name}: {panel['title']}", panel


@functools.cache
def metrics_of_the_code() -> frozenset[str]:
    """The names of all metrics that the daemon can show, as its sources say them."""
    found: set[str] = set()
    for path in (REPOSITORY / "vk-provider").rglob("*.[ch]pp"):
        text = path.read_text()
        found.update(_NAMED.findall(text))
        # The names of a lease's metrics begin with whose lease it is.
        for suffix in _SUFFIX.findall(text):
            found.update(f"spillway_{lease}_lease{suffix}" for lease in ("installation", "gate"))
    for name in [name for name in found if name.endswith("_seconds")]:
        found.update(name + part for part in ("_bucket", "_count", "_sum"))
    return frozenset(found)


def unknown(expression: str) -> set[str]:
    return set(_OURS.findall(expression)) - metrics_of_the_code()


def test_promtool_checks_the_rules() -> None:
    said = promtool("check", "rules", *RULES)
    assert said.count("SUCCESS") == len(RULES) == 2, said


@pytest.mark.parametrize("path", sorted(ALERTS.glob("*.test.yaml")), ids=lambda p: p.name)
def test_promtool_tests_the_rules(path: pathlib.Path) -> None:
    assert "SUCCESS" in promtool("test", "rules", path)


def test_each_alert_is_shown_to_fire() -> None:
    tested = "".join(path.read_text() for path in ALERTS.glob("*.test.yaml"))
    fired = set(re.findall(r'alertname="(\w+)"', tested))
    assert {alert["alert"] for alert in alerts()} == fired


def test_each_alert_leads_to_its_entry() -> None:
    entries = re.findall(r"^### (\w+)$", (REPOSITORY / RUNBOOK).read_text(), re.MULTILINE)
    names = [alert["alert"] for alert in alerts()]
    assert sorted(entries) == sorted(names)
    for alert in alerts():
        assert alert["labels"]["severity"] in ("page", "ticket"), alert["alert"]
        assert alert["annotations"]["summary"], alert["alert"]
        anchor = f"{RUNBOOK}#{alert['alert'].lower()}"
        assert alert["annotations"]["runbook_url"] == anchor, alert["alert"]


def test_what_alerts_and_dashboards_name_exists() -> None:
    assert {"spillway_gate_open", "spillway_gate_lease_held"} <= metrics_of_the_code()
    assert unknown("spillway_no_such_metric") == {"spillway_no_such_metric"}
    for alert in alerts():
        assert unknown(alert["expr"]) == set(), alert["alert"]
    for name, panel in panels():
        for target in panel["targets"]:
            assert unknown(target["expr"]) == set(), name


def test_the_labels_that_they_ask_for_exist() -> None:
    """A value with a typing error matches nothing, and an alert on it never fires."""
    sources = [p.read_text() for p in (REPOSITORY / "vk-provider").rglob("*.[ch]pp")]
    words = set(re.findall(r'"(\w+)"', "".join(sources)))
    expressions = [alert["expr"] for alert in alerts()]
    expressions += [target["expr"] for _, panel in panels() for target in panel["targets"]]
    asked = set()
    for expression in expressions:
        for series in _SERIES.findall(expression):
            for label, values in _MATCHER.findall(series):
                asked.update(f"{label}={value}" for value in values.split("|"))
    assert {"stage=running", "reason=LaunchBackOff", "kind=closeAt"} <= asked
    assert {pair for pair in asked if not set(pair.split("=")) <= words} == set()


def test_dashboards_are_whole(tmp_path: pathlib.Path) -> None:
    recorded = {"home:gpus_allocatable:by_node", "home:gpus_capacity:by_node"}
    recorded.add("home:gpus_requested:by_node")
    rules, places = [], []
    for path in DASHBOARDS:
        board = json.loads(path.read_text())
        ids = [panel["id"] for panel in board["panels"]]
        assert len(ids) == len(set(ids)) and board["uid"] == f"spillway-{path.stem}"
    for name, panel in panels():
        assert panel["datasource"]["uid"] == "${datasource}", name
        where = panel["gridPos"]
        places.append((name.split(":")[0], where["x"], where["y"]))
        assert where["x"] + where["w"] <= 24, name
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", "5m")
            assert set(re.findall(r"home:[\w:]+", expression)) <= recorded, name
            # What promtool calls wrong in a rule is wrong in a panel.
            rules.append({"record": f"panel:{len(rules)}", "expr": expression})
    assert len(DASHBOARDS) == 3 and len(places) == len(set(places)), "panels lie on one another"
    file = tmp_path / "panels.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    assert "SUCCESS" in promtool("check", "rules", file)


def test_a_dashboard_that_counts_gpus_leaves_virtual_nodes_out() -> None:
    """The mistake that the runbook warns of must not be ours."""
    raw = re.compile(r"kube_node_status_(allocatable|capacity)|kube_pod_resource_request")
    for name, panel in panels():
        for target in panel["targets"]:
            assert not raw.search(target["expr"]), f"{name} counts all nodes"


def test_a_real_prometheus_evaluates_them_on_a_real_daemon(
    make_world: Worlds, short_tmp: pathlib.Path
) -> None:
    world = make_world("fake")
    world.create_pod("one")
    world.wait_ready("one")
    prometheus = Prometheus(short_tmp / "alerts")
    world.on_close.append(prometheus.close)
    prometheus.start({"spillway": [f"127.0.0.1:{world.daemon.port}"]}, rules=RULES)
    prometheus.wait_value("sum(spillway_installation_lease_held)", 1)
    prometheus.wait_value('sum(spillway_pods{stage="running"})', 1)
    # Each metric that the daemon shows is one of those that the sources were found to name.
    for name, _ in world.daemon.metrics():
        assert not name.startswith("spillway_") or name in metrics_of_the_code(), name
    rules = prometheus.rules()
    assert {rule["health"] for rule in rules} <= {"ok", "unknown"}, rules
    assert [rule["name"] for rule in rules if rule.get("state") == "firing"] == []
    wanted = {rule["name"] for rule in rules if rule["type"] == "alerting"}
    assert wanted == {alert["alert"] for alert in alerts()}
