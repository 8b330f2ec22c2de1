"""The record that the model of the API server is held to is still what the real one says."""

from __future__ import annotations

import difflib
import subprocess
from collections.abc import Callable

from test.cluster.cluster import REPOSITORY, Cluster

SCRIPT = REPOSITORY / "test" / "data" / "api_script.txt"
RECORD = REPOSITORY / "test" / "data" / "api_script.transcript"
PROGRAM = REPOSITORY / "build" / "release" / "api_script"

FLAGS = (
    # What these two add is taken away by controllers, which do not run here.
    "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
    # So that the script sees a continue token grow too old.
    "--etcd-compaction-interval=5s",
)


def test_the_real_server_says_what_is_recorded(new_cluster: Callable[..., Cluster]) -> None:
    cluster = new_cluster(controllers=False, extra_args={"kube-apiserver": FLAGS})
    # A server knows the history since it began: there has to be something before that.
    cluster.restart_apiserver()
    command = [PROGRAM, SCRIPT, cluster.kubeconfig]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    recorded = RECORD.read_text()
    difference = difflib.unified_diff(
        recorded.splitlines(), done.stdout.splitlines(), "recorded", "said now", lineterm="", n=3
    )
    assert done.stdout == recorded, "\n".join(list(difference)[:40])
