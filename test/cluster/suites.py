"""Runs every check and test, streams what they print, and counts. Used by test/run.sh.

The last line is `N passed, N failed`: Catch2 test cases, pytest tests and lint checks. A step
that cannot be built, is missing, crashes or hangs counts as one failure, so that a green total
means that everything ran.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree
from collections.abc import Callable, Sequence

from .binaries import binary
from .certificates import Authority
from .cluster import REPOSITORY
from .dockerd import Engine
from .power_switch import PowerSwitch
from .processes import free_port, reap
from .pytest_plugin import LOGS

BUILD = REPOSITORY / "build"
RESULTS = BUILD / "test-results"

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclasses.dataclass
class Outcome:
    """What one step has to show. `note` says why, where the numbers do not."""

    passed: int = 0
    failed: int = 0
    note: str = ""


def run(command: Sequence[str | os.PathLike[str]], timeout: float, **environment: str) -> Command:
    """Runs a command in the repository; prints its output as it comes and keeps it."""
    with subprocess.Popen(
        [os.fspath(word) for word in command],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        env=os.environ | environment,
        start_new_session=True,
    ) as process:
        expired = threading.Event()

        def end() -> None:
            expired.set()
            _end_group(process)

        timer = threading.Timer(timeout, end)
        timer.start()
        lines = []
        try:
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line)
                sys.stdout.write(line)
                sys.stdout.flush()
            process.wait()
        finally:
            timer.cancel()
            _end_group(process)
    note = f"hung: ended after {timeout:.0f} s" if expired.is_set() else ""
    return Command(process.returncode, _ANSI.sub("", "".join(lines)), note)


def _end_group(process: subprocess.Popen[str]) -> None:
    # The group is the step's own (start_new_session), and its leader is not yet reaped or was ours.
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@dataclasses.dataclass
class Command:
    """A command that has ended, with what it printed."""

    code: int
    output: str
    note: str = ""


def judged(outcome: Outcome, command: Command, good_codes: Sequence[int] = (0,)) -> Outcome:
    """Adds a failure if the command failed in a way that its own count does not show."""
    if command.code not in good_codes and outcome.failed == 0:
        outcome.failed = 1
        outcome.note = command.note or f"exit code {command.code}"
    elif command.note:
        outcome.note = command.note
    return outcome


def parse_catch(output: str) -> Outcome | None:
    """The counts of Catch2's console reporter; None if it printed none."""
    everything = re.search(r"^All tests passed \(.* in (\d+) test cases?\)", output, re.MULTILINE)
    if everything:
        return Outcome(passed=int(everything[1]))
    some = re.search(r"^test cases:\s*(\d+)((?:\s*\|\s*\d+ [a-z ]+)*)\s*$", output, re.MULTILINE)
    if some is None:
        return None
    counts = {name.strip(): int(n) for n, name in re.findall(r"(\d+) ([a-z ]+)", some[2])}
    return Outcome(int(some[1]) - counts.get("failed", 0), counts.get("failed", 0))


def parse_lint(output: str) -> Outcome | None:
    """The counts on the last `N passed, N failed` line; None if there is none."""
    found = re.findall(r"^(\d+) passed, (\d+) failed", output, re.MULTILINE)
    return Outcome(int(found[-1][0]), int(found[-1][1])) if found else None


def parse_junit(path: pathlib.Path) -> Outcome | None:
    """The counts of pytest's JUnit file; None if there is none or it is torn."""
    try:
        suites = list(xml.etree.ElementTree.parse(path).getroot().iter("testsuite"))
    except (OSError, xml.etree.ElementTree.ParseError):
        return None

    def total(name: str) -> int:
        return sum(int(suite.get(name, "0")) for suite in suites)

    failed = total("failures") + total("errors")
    return Outcome(max(0, total("tests") - failed - total("skipped")), failed)


def lint() -> Outcome:
    runner = REPOSITORY / "test" / "lint" / "run"
    if not runner.exists():
        return Outcome(failed=1, note="test/lint/run is missing")
    # How things are called in tests is no fault of the product, and costs ten minutes: `make lint` looks at it.
    command = run([runner, "--skip", "test-names"], timeout=2400)
    return judged(parse_lint(command.output) or Outcome(passed=command.code == 0), command)


def build(preset: str, *targets: str) -> Outcome:
    """Builds; adds nothing to the count unless it fails."""
    configured = run(["cmake", "--preset", preset], timeout=300)
    if configured.code != 0:
        return Outcome(failed=1, note=f"cmake --preset {preset} failed")
    command = ["cmake", "--build", "--preset", preset]
    command += ["--target", *targets] if targets else []
    return judged(Outcome(), run(command, timeout=3000))


def build_asan() -> Outcome:
    return build("asan", "unit_tests", "simulation")


def defines(preset: str, target: str) -> bool:
    """Whether CMake has such a target; configures first, since only then Ninja can tell."""
    if run(["cmake", "--preset", preset], timeout=300).code != 0:
        return True
    listed = subprocess.run(
        ["ninja", "-C", BUILD / preset, "-t", "query", target], capture_output=True
    )
    return listed.returncode == 0


def catch(preset: str, name: str, **environment: str) -> Outcome:
    """A Catch2 program of a preset."""
    program = BUILD / preset / name
    if not program.exists():
        return Outcome(failed=1, note=f"{program.relative_to(REPOSITORY)} is missing")
    command = run(
        [program],
        timeout=900,
        UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1",
        ASAN_SYMBOLIZER_PATH=shutil.which("llvm-symbolizer-19") or "",
        **environment,
    )
    return judged(parse_catch(command.output) or Outcome(failed=1, note="no summary"), command)


def pytest(
    name: str, folders: Sequence[str], expression: str, timeout: float, *, workers: int = 0
) -> Outcome:
    """Runs tests; with `workers` in so many processes, each with a control plane of its own."""
    present = [f for f in folders if list((REPOSITORY / f).rglob("test_*.py"))]
    absent = [f for f in folders if f not in present]
    outcome = Outcome()
    if present:
        report = RESULTS / f"{name}.xml"
        report.unlink(missing_ok=True)
        command = run(
            [
                *(sys.executable, "-m", "pytest", *present, "-m", expression),
                *("--color=no", "--durations=10", f"--junitxml={report}"),
                *((f"--numprocesses={workers}", "--dist=worksteal") if workers else ()),
            ],
            timeout=timeout,
        )
        outcome = parse_junit(report) or Outcome(failed=1, note="pytest wrote no report")
        outcome = judged(outcome, command)
    if absent:
        outcome.failed += len(absent)
        outcome.note = f"no tests in {', '.join(absent)}"
    return outcome


@dataclasses.dataclass
class Step:
    name: str
    work: Callable[[], Outcome]


def integration() -> Outcome:
    """The C++ tests that talk to a real Docker engine: a private one, for this step alone."""
    name = "integration_tests"
    if not defines("release", name):
        return Outcome(note="not defined by CMake")
    with tempfile.TemporaryDirectory(prefix="spw-int-") as folder:
        ca = Authority(pathlib.Path(folder), "ca")
        ca.issue("client", common_name="client")
        Authority(pathlib.Path(folder), "other")
        certificate, key = ca.issue("engine", common_name="engine", hosts=["127.0.0.1"])
        tls = f"127.0.0.1:{free_port()}"
        options = [f"--host=tcp://{tls}", "--tlsverify", f"--tlscacert={ca.certificate}"]
        options += [f"--tlscert={certificate}", f"--tlskey={key}"]
        engine = Engine(extra_args=options).start(pathlib.Path(folder) / "engine")
        try:
            engine.import_busybox_image()
            with PowerSwitch(engine) as power:
                return catch(
                    "release",
                    name,
                    SPILLWAY_TEST_DOCKER_TLS=tls,
                    SPILLWAY_TEST_DOCKER_CERTIFICATES=folder,
                    SPILLWAY_TEST_DOCKER_SOCKET=str(engine.socket),
                    SPILLWAY_TEST_DOCKER_POWER=str(power.socket),
                    SPILLWAY_TEST_REGISTRY=str(binary("registry", "registry")),
                )
        finally:
            engine.stop()


def simulate(preset: str, *arguments: str) -> Command:
    return run([BUILD / preset / "simulation", *arguments], timeout=300)


def simulation() -> Outcome:
    """Bad input, many lives in virtual time, the planted bugs, and the bugs of the past."""
    jobs = f"--jobs={os.cpu_count() or 1}"
    known_traces = ("digest", "--expect=test/simulation/digests.txt")
    outcome = pytest("simulation", ["test/simulation"], "not soak", 300)
    for command in (
        simulate("release", *known_traces),
        simulate("asan", *known_traces),
        simulate("release", "run", "--lives=20000", "--coverage", jobs),
        simulate("asan", "run", "--lives=500", jobs),
        simulate("release", "mutants", jobs),
        simulate("release", "check", "test/simulation/regressions"),
    ):
        counted = parse_lint(command.output) or Outcome(passed=int(command.code == 0))
        counted = judged(counted, command)
        outcome.passed += counted.passed
        outcome.failed += counted.failed
        outcome.note = outcome.note or counted.note
    return outcome


FUZZED = ("spdy", "channels", "http_request")


def fuzz(seconds: int) -> Outcome:
    """Each parser of what clients send, for so long, all at once. What breaks one is kept in build/fuzz."""
    outcome = build("asan", *(f"fuzz_{name}" for name in FUZZED))
    folder = BUILD / "fuzz"
    outcome = judged(outcome, run([sys.executable, "test/fuzz/make_corpus.py", folder], timeout=60))
    if outcome.failed:
        return outcome

    def feed(name: str) -> Command:
        command: list[str | os.PathLike[str]] = [BUILD / "asan" / f"fuzz_{name}", folder / name]
        command += [f"-artifact_prefix={folder}/{name}-", f"-max_total_time={seconds}"]
        command += ["-timeout=10", "-rss_limit_mb=1024", "-max_len=65536"]
        command += ["-print_final_stats=1", "-verbosity=0"]
        return run(command, timeout=seconds + 120)

    with concurrent.futures.ThreadPoolExecutor(len(FUZZED)) as all_of_them:
        for name, command in zip(FUZZED, all_of_them.map(feed, FUZZED), strict=True):
            done = judged(Outcome(passed=int(command.code == 0)), command)
            outcome.passed += done.passed
            outcome.failed += done.failed
            outcome.note = outcome.note or (f"{name}: {done.note}" if done.note else "")
    return outcome


STEPS = (
    Step("build release", lambda: build("release")),
    Step("unit release", lambda: catch("release", "unit_tests")),
    Step("integration release", integration),
    Step("test cluster", lambda: pytest("cluster", ["test/cluster"], "not soak", 600)),
    Step(
        "e2e",
        # More than cores: these tests mostly wait.
        lambda: pytest("e2e", ["test/e2e"], "not soak", 1800, workers=4),
    ),
    Step("build asan", build_asan),
    Step("unit asan", lambda: catch("asan", "unit_tests")),
    Step("fuzz", lambda: fuzz(60)),
    Step("simulation", simulation),
    Step("lint", lint),
)

SOAK = (
    Step("build release", lambda: build("release")),
    Step("soak", lambda: pytest("soak", ["test/e2e"], "soak", 4 * 3600, workers=2)),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="test/run.sh", description="Run all checks and tests.")
    parser.add_argument("--soak", action="store_true", help="run only what takes minutes and more")
    parser.add_argument("--fuzz", type=int, metavar="SECONDS", help="only feed each parser for so long")
    arguments = parser.parse_args()
    steps = SOAK if arguments.soak else STEPS
    if arguments.fuzz:
        steps = (Step("fuzz", lambda: fuzz(arguments.fuzz)),)
    reap()
    shutil.rmtree(LOGS, ignore_errors=True)
    RESULTS.mkdir(parents=True, exist_ok=True)

    begin = time.monotonic()
    rows, total = [], Outcome()
    for step in steps:
        print(f"\n==== {step.name}", flush=True)
        started = time.monotonic()
        try:
            outcome = step.work()
        except Exception as error:
            outcome = Outcome(failed=1, note=f"{type(error).__name__}: {error}")
        spent = time.monotonic() - started
        rows.append((step.name, outcome, spent))
        total.passed += outcome.passed
        total.failed += outcome.failed
    for name in reap():
        total.failed += 1
        rows.append((f"left behind by a test: {name}", Outcome(failed=1), 0.0))

    print(f"\n==== summary, {time.monotonic() - begin:.0f} s")
    for name, outcome, spent in rows:
        mark = "FAIL" if outcome.failed else "ok"
        counts = f"{outcome.passed:5} passed {outcome.failed:4} failed"
        print(f"{mark:4}  {name:24} {counts} {spent:6.0f} s  {outcome.note}".rstrip())
    if total.failed and LOGS.exists():
        print(f"logs of clusters and engines are in {LOGS.relative_to(REPOSITORY)}")
    print(f"{total.passed} passed, {total.failed} failed", flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
