"""Long-lived clusters for people: python -m test.cluster up|down|list."""

from __future__ import annotations

import argparse
import shutil
import sys
import time

from .cluster import REPOSITORY, Cluster
from .processes import Keeper, reap, records

CLUSTERS = REPOSITORY / "build" / "clusters"


def _running(name: str) -> Keeper | None:
    directory = CLUSTERS / name
    return next((k for k in records() if k.detached and k.directory == directory), None)


def up(name: str) -> int:
    reap()
    directory = CLUSTERS / name
    kubeconfig = directory / "admin.kubeconfig"
    if _running(name) is not None:
        print(f"cluster {name} is already up", file=sys.stderr)
        print(kubeconfig)
        return 0
    # Left by a cluster that a reboot ended, which took the record of it along.
    shutil.rmtree(directory, ignore_errors=True)
    begin = time.monotonic()
    print(f"starting cluster {name} ...", file=sys.stderr)
    cluster = Cluster().start(directory, detached=True)
    print(
        f"cluster {name} is ready after {time.monotonic() - begin:.1f} s; "
        f"`make cluster-down` ends it; logs are in {directory / 'logs'}",
        file=sys.stderr,
    )
    print(cluster.kubeconfig)
    return 0


def down(name: str) -> int:
    reap()
    keeper = _running(name)
    if keeper is None:
        print(f"cluster {name} is not up", file=sys.stderr)
        return 0
    keeper.close()
    print(f"cluster {name} is gone", file=sys.stderr)
    return 0


def down_all() -> int:
    reap()
    for keeper in records():
        if keeper.detached and keeper.directory.parent == CLUSTERS:
            keeper.close()
            print(f"cluster {keeper.directory.name} is gone", file=sys.stderr)
    return 0


def list_all() -> int:
    for keeper in records():
        owner = "detached" if keeper.detached else f"owner {keeper.owner_pid}"
        alive = sum(child.alive() for child in keeper.children)
        print(f"{keeper.kind}\t{keeper.directory}\t{owner}\t{alive} processes")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m test.cluster", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    for action, help_text in (
        ("up", "start a cluster and print only its kubeconfig's path on stdout"),
        ("down", "end a cluster and remove its folder"),
    ):
        command = actions.add_parser(action, help=help_text)
        command.add_argument("--name", default="default", help="several can be up side by side")
        if action == "down":
            command.add_argument("--all", action="store_true", help="all clusters of this tree")
    actions.add_parser("list", help="list clusters and engines on this machine")
    actions.add_parser("reap", help="remove what dead test runs left behind")
    arguments = parser.parse_args()
    if arguments.action == "up":
        return up(arguments.name)
    if arguments.action == "down":
        return down_all() if arguments.all else down(arguments.name)
    if arguments.action == "list":
        return list_all()
    for name in reap():
        print(f"removed what was left of {name}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
