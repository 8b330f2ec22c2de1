#!/usr/bin/env python3
"""Builds the Go programs that tests run (control plane, registry, peers of the bench) once, into a cache.

One folder under ``go/`` is one Go module. Its programs land in
``$SPILLWAY_CACHE/bin/<module>-<hash>/`` (default ``~/.cache/spillway``), where the hash covers
go.mod, go.sum and every source file of the module, the Go release and the link flags: a change
of any of them builds anew, everything else is a look-up. Standard library only, because
``make setup`` runs this before the virtual environment exists.
"""

from __future__ import annotations

import argparse
import dataclasses
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

GO_DIR = pathlib.Path(__file__).resolve().parent / "go"
KUBERNETES_VERSION = "v1.36.3"
MINIMUM_GO = (1, 26)


OLD_KUBECTL_VERSION = "v1.32.13"


def _kubernetes_flags(release: str = KUBERNETES_VERSION) -> tuple[str, ...]:
    """Without these the server calls itself v0.0.0-master and kubectl cannot parse that."""
    major, minor, _ = release.removeprefix("v").split(".")
    values = {"gitVersion": release, "gitMajor": major, "gitMinor": minor}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return tuple(f"-X {p}.{k}={v}" for p in packages for k, v in values.items())


@dataclasses.dataclass(frozen=True)
class Module:
    """One Go module: its programs by name, and what to build and link them with.

    `data` joins YAML files of a module that it requires: {file: (module, paths in it)}.
    `folder` is where it lies, if not under go/.
    """

    name: str
    programs: dict[str, str]
    link_flags: tuple[str, ...] = ()
    data: dict[str, tuple[str, tuple[str, ...]]] = dataclasses.field(default_factory=dict)
    folder: pathlib.Path | None = None
    tags: tuple[str, ...] = ()

    @property
    def source(self) -> pathlib.Path:
        return self.folder or GO_DIR / self.name

    def key(self) -> str:
        """Hash of everything of ours that decides what the programs are."""
        digest = hashlib.sha256()
        programs, data = sorted(self.programs.items()), sorted(self.data.items())
        # Without tags as it was before there were any: what is built stays valid.
        rest = (data, self.tags) if self.tags else (data,)
        digest.update(repr((MINIMUM_GO, programs, self.link_flags, *rest)).encode())
        for path in sorted(p for p in self.source.rglob("*") if p.is_file()):
            digest.update(str(path.relative_to(self.source)).encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()[:16]

    def target(self) -> pathlib.Path:
        return cache_dir() / "bin" / f"{self.name}-{self.key()}"


MODULES = {
    module.name: module
    for module in (
        Module(
            "controlplane",
            {
                "etcd": "./cmd/etcd",
                "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
                "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
                "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
                "kubectl": "k8s.io/kubernetes/cmd/kubectl",
            },
            _kubernetes_flags(),
        ),
        Module(
            "kube-proxy",
            {"kube-proxy": "k8s.io/kubernetes/cmd/kube-proxy"},
            _kubernetes_flags(),
        ),
        Module(
            "kwok",
            {"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
            # What kwok does to nodes and pods, at its fastest: `kwok --config=.../stages.yaml`.
            data={
                "stages.yaml": (
                    "sigs.k8s.io/kwok",
                    (
                        "kustomize/stage/node/fast/node-initialize.yaml",
                        "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
                        "kustomize/stage/pod/fast/pod-ready.yaml",
                        "kustomize/stage/pod/fast/pod-complete.yaml",
                        "kustomize/stage/pod/fast/pod-delete.yaml",
                    ),
                )
            },
        ),
        Module("descheduler", {"descheduler": "sigs.k8s.io/descheduler/cmd/descheduler"}),
        Module("kubectl-1.32", {"kubectl": "."}, _kubernetes_flags(OLD_KUBECTL_VERSION)),
        Module(
            "metrics-server",
            {"metrics-server": "sigs.k8s.io/metrics-server/cmd/metrics-server"},
            data={
                "rights.yaml": ("sigs.k8s.io/metrics-server", ("manifests/base/rbac.yaml",)),
            },
        ),
        Module(
            "prometheus",
            {
                name: f"github.com/prometheus/prometheus/cmd/{name}"
                for name in ("prometheus", "promtool")
            },
            # The clients of thirty clouds, to find what to scrape, are most of its size.
            tags=("remove_all_sd",),
        ),
        Module("registry", {"registry": "github.com/distribution/distribution/v3/cmd/registry"}),
        Module("streams", {"streams": "."}),
        Module("virtual-kubelet", {"virtual-kubelet": "."}),
        Module("virtual-kubelet-suite", {"suite": "."}),
        Module("loader", {"loader": "."}, folder=GO_DIR.parents[1] / "bench" / "loader"),
    )
}


def cache_dir() -> pathlib.Path:
    default = pathlib.Path.home() / ".cache" / "spillway"
    return pathlib.Path(os.environ.get("SPILLWAY_CACHE") or default)


def find_go() -> str:
    """The Go command: the one on PATH, the usual place, or the one setup.sh fetched."""
    candidates = (
        shutil.which("go"),
        "/usr/local/go/bin/go",
        str(cache_dir() / "go" / "bin" / "go"),
    )
    for candidate in candidates:
        if candidate and os.access(candidate, os.X_OK) and _is_new_enough(candidate):
            return candidate
    wanted = ".".join(map(str, MINIMUM_GO))
    raise SystemExit(f"no Go {wanted} or newer found: run `make setup`, which fetches one")


def _is_new_enough(go: str) -> bool:
    # Run inside a module, so that GOTOOLCHAIN=auto may switch to the release that go.mod asks for.
    done = subprocess.run(
        [go, "env", "GOVERSION"], cwd=GO_DIR / "controlplane", capture_output=True, text=True
    )
    numbers = done.stdout.strip().removeprefix("go").split(".")
    try:
        return done.returncode == 0 and (int(numbers[0]), int(numbers[1])) >= MINIMUM_GO
    except (ValueError, IndexError):
        return False


def build(module_name: str) -> pathlib.Path:
    """Builds a module unless its programs are in the cache; returns the folder that holds them."""
    module = MODULES[module_name]
    target = module.target()
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.parent / f".{module_name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.is_dir():
            return target
        work = pathlib.Path(tempfile.mkdtemp(prefix=f".{module_name}-", dir=target.parent))
        try:
            for program, package in module.programs.items():
                _build_program(module, program, package, work / program)
            for name, (source, paths) in module.data.items():
                folder = _folder_of(module, source)
                (work / name).write_text("---\n".join((folder / p).read_text() for p in paths))
            work.chmod(0o755)
            work.rename(target)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return target


def _build_program(module: Module, program: str, package: str, output: pathlib.Path) -> None:
    begin = time.monotonic()
    print(f"building {program} ({module.name}) ...", file=sys.stderr, flush=True)
    flags = " ".join(("-s", "-w", *module.link_flags))
    # -mod=readonly: go.mod and go.sum are the pins, a build must never edit them.
    command = ["nice", "-n", "5", find_go(), "build", "-mod=readonly", "-trimpath"]
    command += ["-buildvcs=false", "-ldflags", flags]
    command += ["-tags", ",".join(module.tags), "-o", str(output), package]
    environment = os.environ | {"CGO_ENABLED": "0"}
    done = subprocess.run(command, cwd=module.source, env=environment)
    if done.returncode != 0:
        raise SystemExit(
            f"building {program} failed (go build exited {done.returncode}, output above); "
            f"if a download failed, check that GOPROXY is reachable and run `make setup` again"
        )
    spent = time.monotonic() - begin
    print(f"built {program} in {spent:.0f} s", file=sys.stderr, flush=True)


def _folder_of(module: Module, requirement: str) -> pathlib.Path:
    """Where Go keeps the sources of a module that this one requires."""
    command = [find_go(), "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", requirement]
    done = subprocess.run(command, cwd=module.source, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"go list {requirement} in {module.source} failed: {done.stderr.strip()}")
    return pathlib.Path(done.stdout.strip())


def binary(module: str, program: str) -> pathlib.Path:
    """Path of a program (or data file) that was built before; says what to run if it was not."""
    path = MODULES[module].target() / program
    if not path.is_file():
        raise FileNotFoundError(
            f"{program} is not built for the present sources of test/cluster/go/{module}: "
            f"run `make setup` or `python3 test/cluster/binaries.py build {module}`"
        )
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description="Build or find the Go programs of the tests.")
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("go", help="print the Go command that is used")
    for action, help_text in (
        ("build", "build what is not in the cache, and print the folders"),
        ("path", "print the folders"),
    ):
        command = actions.add_parser(action, help=help_text)
        command.add_argument("module", nargs="+", choices=sorted(MODULES))
    arguments = parser.parse_args()
    if arguments.action == "go":
        print(find_go())
        return
    for name in arguments.module:
        print(build(name) if arguments.action == "build" else MODULES[name].target())


if __name__ == "__main__":
    main()
