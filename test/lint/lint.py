"""Runs the checks of the sources, several at a time, and remembers what was fine.

    test/lint/run                    all checks
    test/lint/run arrows format      only these
    test/lint/run --skip test-names  all but this (it takes as long as the rest, and finds names only)
    test/lint/run --root DIR         of another tree (the self-test plants faults in one)

Prints `ok <check>` or `FAIL <check>` with what is wrong; the last line is `N passed, N failed`.
What a compiler-based check found to be fine is not looked at again until the file, a header that it
includes, the settings or the tool changes (build/lint-cache holds an empty file per such result).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pathlib
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


class Tree:
    """The files that are checked: what git tracks or would track."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            capture_output=True,
            check=True,
        )
        names = listed.stdout.decode().split("\0")
        self.files = sorted({name for name in names if name and (root / name).is_file()})
        self._text: dict[str, str] = {}
        self._digest: dict[str, bytes] = {}

    def sources(self, *suffixes: str, under: Sequence[str] = ("vk-provider/", "providers/", "test/")) -> list[str]:
        return [name for name in self.files if name.endswith(suffixes) and name.startswith(tuple(under))]

    def text(self, name: str) -> str:
        if name not in self._text:
            self._text[name] = (self.root / name).read_text(encoding="utf-8", errors="replace")
        return self._text[name]

    def digest(self, name: str) -> bytes:
        """Of a file and of everything of ours that it includes, also through other headers."""
        if name not in self._digest:
            seen: set[str] = set()
            todo = [name]
            while todo:
                current = todo.pop()
                if current in seen or not (self.root / current).is_file():
                    continue
                seen.add(current)
                todo += _INCLUDE.findall(self.text(current))
            total = hashlib.sha256()
            for part in sorted(seen):
                total.update(part.encode() + b"\0" + self.text(part).encode() + b"\0")
            self._digest[name] = total.digest()
        return self._digest[name]


class Cache:
    """Remembers good results by the hash of everything that they depend on."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder

    def path(self, *parts: bytes) -> pathlib.Path:
        return self._folder / hashlib.sha256(b"\0".join(parts)).hexdigest()

    def has(self, path: pathlib.Path) -> bool:
        if not path.exists():
            return False
        os.utime(path)  # so that what nobody asks for any more can be told from the rest
        return True

    def add(self, path: pathlib.Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def prune(self, days: int = 30) -> None:
        if not self._folder.is_dir():
            return
        oldest = time.time() - days * 86400
        for path in self._folder.iterdir():
            if path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)


class Context:
    """What a check is given."""

    def __init__(self, root: pathlib.Path) -> None:
        self.tree = Tree(root)
        self.cache = Cache(root / "build" / "lint-cache")
        self.pool = ThreadPoolExecutor(max_workers=max(2, os.cpu_count() or 2))

    def run(self, command: Sequence[str]) -> tuple[int, str]:
        """In the tree, at low priority; all that it printed."""
        done = subprocess.run(
            ["nice", *command],
            cwd=self.tree.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        return done.returncode, done.stdout

    def each(self, files: Iterable[str], salt: bytes, check: Callable[[str], str]) -> list[str]:
        """The faults that `check` finds in each file, several at once, skipping what is known to be fine."""

        def one(name: str) -> str:
            remembered = self.cache.path(salt, name.encode(), self.tree.digest(name))
            if self.cache.has(remembered):
                return ""
            fault = check(name)
            if not fault:
                self.cache.add(remembered)
            return fault

        return [fault for fault in self.pool.map(one, list(files)) if fault]


def main(arguments: Sequence[str] | None = None) -> int:
    from . import text_checks, tool_checks

    checks: dict[str, Callable[[Context], list[str]]] = {
        "tree": text_checks.tree,
        "arrows": text_checks.arrows,
        "libraries": text_checks.libraries,
        "no-detached": text_checks.no_detached,
        "no-capturing-coroutines": text_checks.no_capturing_coroutines,
        "no-sleeping-tests": text_checks.no_sleeping_tests,
        "format": tool_checks.clang_format,
        "headers-alone": tool_checks.headers_alone,
        "clang-tidy": tool_checks.clang_tidy,
        "test-names": tool_checks.test_names,
    }
    parser = argparse.ArgumentParser(description="Checks the sources.")
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=" ".join(checks))
    parser.add_argument("--skip", action="append", default=[], metavar="CHECK", help="leave it out")
    parser.add_argument("--root", type=pathlib.Path, default=REPOSITORY)
    options = parser.parse_args(arguments)
    for name in options.checks + options.skip:
        if name not in checks:
            parser.error(f"no check is called {name}; there are {' '.join(checks)}")

    context = Context(options.root.resolve())
    failed = 0
    chosen = [name for name in options.checks or checks if name not in options.skip]
    for name in chosen:
        begun = time.monotonic()
        faults = checks[name](context)
        took = f"({time.monotonic() - begun:.1f} s)"
        print(f"FAIL {name} {took}" if faults else f"ok {name} {took}", flush=True)
        for fault in faults:
            print("  " + fault.rstrip().replace("\n", "\n  "), flush=True)
        failed += bool(faults)
    context.cache.prune()
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0
