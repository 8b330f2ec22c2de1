"""Checks by clang's tools. Each file's good result is remembered (lint.Cache)."""

from __future__ import annotations

import functools
import pathlib
import re
import subprocess

from .lint import Context

_FORMAT = "clang-format-19"
_TIDY = "clang-tidy-19"
_COMPILER = "clang++-19"

# What CMakeLists.txt gives to every target, as far as the text of our code depends on it.
_FLAGS = [
    "-std=c++23", "-I.", "-isystem", "build/lint-generated", "-DBOOST_ASIO_NO_DEPRECATED",
    "-DBOOST_ASIO_SEPARATE_COMPILATION",
    "-DBOOST_BEAST_SEPARATE_COMPILATION", "-DBOOST_URL_STATIC_LINK=1", "-DBOOST_URL_NO_LIB=1",
    "-DSPDLOG_FMT_EXTERNAL", '-DSPILLWAY_SOURCE_DIR="."',
]  # fmt: skip
_WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wnon-virtual-dtor", "-Werror"]


# Headers that the build generates; here they stand for themselves, so that no build is needed first.
_GENERATED = {
    "spillway_commit.hpp": "#pragma once\nnamespace spillway {\n"
    'inline constexpr const char* kGitCommit = "lint";\n}  // namespace spillway\n',
}
_GENERATED_FOLDER = "build/lint-generated"


def _generate(context: Context) -> None:
    folder = context.tree.root / _GENERATED_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in _GENERATED.items():
        (folder / name).write_text(text)


@functools.cache
def _version(tool: str) -> bytes:
    """Of the tool and of the library whose headers dominate what it reads."""
    boost = pathlib.Path("/usr/include/boost/version.hpp")
    return subprocess.run([tool, "--version"], capture_output=True, check=True).stdout + (
        boost.read_bytes() if boost.exists() else b""
    )


def clang_format(context: Context) -> list[str]:
    settings = context.tree.text(".clang-format").encode()

    def check(name: str) -> str:
        code, output = context.run([_FORMAT, "--dry-run", "-Werror", "--ferror-limit=1", name])
        return "" if code == 0 else f"{name}: not formatted; `make format`\n{output}"

    return context.each(context.tree.sources(".hpp", ".cpp"), b"format" + _version(_FORMAT) + settings, check)


def _proven_by_its_source(context: Context, header: str) -> bool:
    """True if x.cpp includes x.hpp before all else: whatever compiles x.cpp (clang-tidy, the build) proves it."""
    source = header.removesuffix(".hpp") + ".cpp"
    if not (context.tree.root / source).is_file():
        return False
    first = re.search(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', context.tree.text(source), re.MULTILINE)
    return first is not None and first[1] == header


def headers_alone(context: Context) -> list[str]:
    """A header that needs another one before it breaks when somebody sorts includes."""

    def check(name: str) -> str:
        code, output = context.run([_COMPILER, *_FLAGS, *_WARNINGS, "-fsyntax-only", "-x", "c++", "-include", name,
                                    "/dev/null"])  # fmt: skip
        return "" if code == 0 else f"{name}: does not compile alone\n{output}"

    _generate(context)
    headers = [name for name in context.tree.sources(".hpp") if not _proven_by_its_source(context, name)]
    return context.each(headers, b"header" + _version(_COMPILER) + " ".join(_FLAGS + _WARNINGS).encode(), check)


# Catch and nlohmann double the cost of a test, and the sanitizers run every test anyway: only names are checked there.
_IN_TESTS = "--checks=-*,readability-identifier-naming"


def clang_tidy(context: Context) -> list[str]:
    product = [name for name in context.tree.sources(".cpp") if not name.startswith("test/")]
    return _tidy(context, product, [])


def test_names(context: Context) -> list[str]:
    tests = [name for name in context.tree.sources(".cpp") if name.startswith("test/")]
    return _tidy(context, tests, [_IN_TESTS])


def _tidy(context: Context, names: list[str], options: list[str]) -> list[str]:
    _generate(context)
    settings = (context.tree.text(".clang-tidy") + "".join(options)).encode()

    def check(name: str) -> str:
        code, output = context.run([_TIDY, "--quiet", *options, name, "--", *_FLAGS])
        if code == 0:
            return ""
        wanted = re.sub(r"^(?:\d+ warnings?.*generated\.|Suppressed .*|Use -header-filter.*|\d+ warnings treated.*)\n",
                        "", output, flags=re.MULTILINE)  # fmt: skip
        return wanted

    faults = context.each(names, b"tidy" + _version(_TIDY) + settings + " ".join(_FLAGS).encode(), check)
    # A fault in a header shows up in every file that includes it; once is enough.
    seen: set[str] = set()
    once = []
    for fault in faults:
        head = fault.split("\n", 1)[0]
        if head not in seen:
            seen.add(head)
            once.append(fault)
    return once
