"""The real descheduler beside a test cluster, with the policy and the rights of config/descheduler."""

from __future__ import annotations

import copy
import pathlib
import re
from typing import Any

import yaml

from . import binaries
from .cluster import REPOSITORY, Cluster
from .processes import Child, Keeper

SHIPPED = REPOSITORY / "config" / "descheduler"

_TOTAL = re.compile(r'"Number of evictions/requests" totalEvicted=(\d+)')


def shipped_policy(*, min_age: str = "") -> dict[str, Any]:
    """The policy of config/descheduler. `min_age` replaces its minPodAge, which no test can wait for."""
    policy = yaml.safe_load((SHIPPED / "policy.yaml").read_text())
    if min_age:
        evictor_args(policy)["minPodAge"] = min_age
    return policy


def evictor_args(policy: dict[str, Any]) -> dict[str, Any]:
    """The arguments of DefaultEvictor, to be changed."""
    configs = policy["profiles"][0]["pluginConfig"]
    return next(entry["args"] for entry in configs if entry["name"] == "DefaultEvictor")


class Descheduler:
    """Runs of the program. It acts on the whole cluster: pods of other tests are kept away by the policy's taint."""

    def __init__(self, cluster: Cluster, directory: pathlib.Path) -> None:
        self._cluster = cluster
        self._keeper = Keeper("descheduler", directory)
        self._runs = 0
        self._child: Child | None = None
        self.log = directory / "descheduler.log"
        # Its namespace comes with config/deploy.
        cluster.kubectl("apply", "-f", str(SHIPPED / "rbac.yaml"))
        self._rights = cluster.account_kubeconfig(
            "spillway-descheduler", "spillway-system", directory / "rights.kubeconfig"
        )

    def start(self, policy: dict[str, Any], interval: str) -> None:
        """Begins to run cycles. The shipped Deployment says how long they are apart; a test, much shorter."""
        self._child = self._spawn(policy, f"--descheduling-interval={interval}")

    def run_once(self, policy: dict[str, Any], timeout: float = 30.0) -> int:
        """One cycle; returns how many pods it evicted. What it said is in `said`."""
        child = self._spawn(policy, "--descheduling-interval=0")
        assert child.wait(timeout), f"no end of one cycle:\n{child.log_tail()}"
        assert child.returncode == 0, child.log_tail()
        # A cycle that was skipped has no count of its own.
        return sum(self.evicted()[-1:])

    def _spawn(self, policy: dict[str, Any], *arguments: str) -> Child:
        self._runs += 1
        self.log = self._keeper.directory / f"descheduler-{self._runs}.log"
        file = self._keeper.directory / f"policy-{self._runs}.yaml"
        file.write_text(yaml.safe_dump(copy.deepcopy(policy)))
        command = [binaries.binary("descheduler", "descheduler"), f"--kubeconfig={self._rights}"]
        command += [f"--policy-config-file={file}", "--secure-port=0", "--v=3", *arguments]
        return self._keeper.spawn("descheduler", command, log=self.log)

    @property
    def said(self) -> str:
        """The log of the last run."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def evicted(self) -> list[int]:
        """Of each cycle of the last run that has ended: how many pods it evicted."""
        return [int(count) for count in _TOTAL.findall(self.said)]

    def stop(self) -> None:
        self._keeper.close()
