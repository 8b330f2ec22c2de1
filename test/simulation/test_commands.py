"""What `simulation` says to bad input, and that it says so with exit code 2."""

from __future__ import annotations

import pathlib
import subprocess

import pytest

from test.cluster.cluster import REPOSITORY

PROGRAM = REPOSITORY / "build" / "release" / "simulation"


def simulation(*arguments: str | pathlib.Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "A subcommand is required"),
        (("dance",), "A subcommand is required"),
        (("run", "--colour"), "--colour"),
        (("run",), "run needs --seeds, --lives or --minutes"),
        (("run", "--seeds=7..3"), 'found "7..3"'),
        (("run", "--seeds=many"), 'found "many"'),
        (("run", "--lives=-1"), "--lives"),
        (("run", "--lives=1", "--mutant=polite"), "no mutant is called polite"),
        (("replay",), "replay needs --seed or a file"),
        (("replay", "--seed=1", "some.plan"), "excludes"),
        (("replay", "/nowhere/some.plan"), "/nowhere/some.plan: cannot be read"),
        (("check", "/nowhere"), "/nowhere: "),
        (("digest",), "digest needs --seeds or --expect"),
        (("digest", "--expect=/nowhere"), "/nowhere: cannot be read"),
    ],
)
def test_bad_arguments_are_refused(arguments: tuple[str, ...], said: str) -> None:
    done = simulation(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "the plan is empty"),
        (b"\x00\x7fELF\xff\n", "line 1: this is no plan of a simulation"),
        (b"spillway-simulation 0\n", "line 1: format 0 is not known; this program reads format 1"),
        (b"spillway-simulation 1\nseed many\n", "line 2: seed must be followed by a number"),
        (b"spillway-simulation 1\ncloud\nat 9 dance\n", 'line 3: there is no verb "dance"'),
    ],
)
def test_a_plan_that_cannot_be_read_is_refused(
    tmp_path: pathlib.Path, text: bytes, said: str
) -> None:
    plan = tmp_path / "some.plan"
    plan.write_bytes(text)
    for done in (simulation("replay", plan), simulation("check", tmp_path)):
        assert done.returncode == 2
        assert f"{plan}: {said}" in done.stderr


def test_a_folder_without_plans_is_refused(tmp_path: pathlib.Path) -> None:
    done = simulation("check", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"simulation: {tmp_path}: holds no *.plan\n"


def test_digests_are_compared_and_rubbish_is_refused(tmp_path: pathlib.Path) -> None:
    recorded = tmp_path / "digests.txt"
    printed = simulation("digest", "--seeds=2..3")
    assert printed.returncode == 0
    recorded.write_text(printed.stdout)
    same = simulation("digest", "--expect", recorded)
    assert (same.returncode, same.stdout) == (0, "2 passed, 0 failed\n")

    lines = printed.stdout.splitlines()
    recorded.write_text(f"{lines[0]}\n3 0123456789abcdef\n")
    other = simulation("digest", "--expect", recorded)
    assert other.returncode == 1
    trace = lines[1].split()[1]
    assert f"seed 3 leaves the trace {trace}, recorded is 0123456789abcdef" in other.stdout
    assert f"simulation digest --seeds 2..3 > {recorded}" in other.stdout

    recorded.write_text("2 0123\n")
    rubbish = simulation("digest", "--expect", recorded)
    assert rubbish.returncode == 2
    assert f"{recorded}: line 1: expected a seed" in rubbish.stderr
