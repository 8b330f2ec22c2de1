"""Checks that read the text of the sources. The include path names the layer, so arrows can be read off it."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator

from .lint import Context

# Which folders of vk-provider/ a folder may include; itself always. The build links the same arrows.
_LAYERS: dict[str, set[str]] = {
    "base": set(),
    "async": {"base"},
    "model": {"base"},
    "core": {"base", "model"},
    "net": {"base", "async"},
    "provider": {"base", "async", "model", "net"},
    "kube": {"base", "async", "model", "net"},
    "control": {"base", "async", "model", "core", "provider", "kube"},
    "plugin": {"base", "async", "model", "net", "provider"},
    "api": {"base", "async", "model", "core", "net", "provider", "kube"},
    "daemon": {"base", "async", "model", "core", "net", "provider", "kube", "control", "plugin", "api"},
}
_GUEST = {"base", "async", "model", "net", "provider"}
_GUESTS_WITH_MORE = {"kubernetes": {"kube"}}  # it is a client of another API server

# Which files may include a library, by the beginning of the include. Tests may include anything.
_LIBRARIES: list[tuple[str, list[str]]] = [
    ("boost/beast", ["vk-provider/net/*"]),
    ("openssl/", ["vk-provider/net/*"]),
    (
        "nlohmann/json.hpp",
        [
            "vk-provider/*/*codec*.cpp",
            "vk-provider/kube/client.cpp",
            "vk-provider/base/log.cpp",
            "providers/*/*codec*.cpp",
            "providers/*/config*",
        ],
    ),
    ("yaml-cpp/", ["vk-provider/daemon/config*", "vk-provider/kube/kubeconfig.cpp", "vk-provider/daemon/cli_manifest.cpp"]),
    ("spdlog/", ["vk-provider/base/log.cpp"]),
    ("prometheus/", ["vk-provider/base/metrics.cpp"]),
    ("grpcpp/", ["vk-provider/plugin/*", "providers/example_plugin/*"]),
    ("google/protobuf/", ["vk-provider/plugin/*", "providers/example_plugin/*"]),
    ("catch2/", []),
    # One thread runs all our code.
    ("mutex", []),
    ("shared_mutex", []),
    ("condition_variable", []),
    ("thread", []),
]
# Decisions and values know nothing of a loop.
_PURE = ("vk-provider/base/", "vk-provider/model/", "vk-provider/core/")

_TOP_LEVEL = {
    "CMakeLists.txt", "CMakePresets.json", "vk-provider", "providers", "proto", "config", "test", "Dockerfile",
    "README.md", "Makefile", "LICENSE", "CHANGELOG.md", ".ci", ".clang-format", ".clang-tidy", ".github",
    ".gitignore", ".gitattributes", ".dockerignore",
}  # fmt: skip

_INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def _includes(context: Context, name: str) -> Iterator[tuple[int, bool, str]]:
    for number, line in enumerate(context.tree.text(name).splitlines(), 1):
        found = _INCLUDE.match(line)
        if found:
            yield number, found[1] == '"', found[2]


def tree(context: Context) -> list[str]:
    """The top level of the repository is fixed."""
    tops = {name.split("/", 1)[0] for name in context.tree.files}
    return [
        f"{top}: does not belong to the top level; find it a place in one of the folders"
        for top in sorted(tops - _TOP_LEVEL)
    ]


def _forbidden_arrow(name: str, include: str) -> str | None:
    """Why a file of ours may not include another one of ours."""
    source, target = name.split("/"), include.split("/")
    if target[0] == "test":
        return "only tests include test/"
    if source[0] == "vk-provider":
        if len(source) == 2:  # main.cpp wires everything
            return None
        if target[0] == "providers":
            return "the daemon knows no provider"
        if source[1] not in _LAYERS:
            return f"vk-provider/{source[1]} is no layer; name it in test/lint/text_checks.py"
        if target[1] != source[1] and target[1] not in _LAYERS[source[1]]:
            return f"{source[1]}/ may include {' '.join(sorted(_LAYERS[source[1]])) or 'nothing'} only"
        return None
    if len(source) == 2:  # providers/builtin.cpp knows all guests
        return None
    if target[0] == "providers":
        return None if target[1] == source[1] else "a provider knows no other provider"
    allowed = _GUEST | _GUESTS_WITH_MORE.get(source[1], set())
    return None if target[1] in allowed else f"a provider may include {' '.join(sorted(allowed))} only"


def arrows(context: Context) -> list[str]:
    """Layers include only what lies below them, by paths from the root."""
    faults = []
    for name in context.tree.sources(".hpp", ".cpp"):
        for number, quoted, include in _includes(context, name):
            if not quoted:
                if include.startswith(("vk-provider/", "providers/", "test/")):
                    faults.append(f'{name}:{number}: our own files are included with quotes: "{include}"')
                continue
            if not include.startswith(("vk-provider/", "providers/", "test/", "proto/", "spillway/")):
                faults.append(f"{name}:{number}: {include}: our own paths begin at the root; others stand in <>")
            elif not name.startswith("test/") and not include.startswith(("proto/", "spillway/")):
                why = _forbidden_arrow(name, include)
                if why:
                    faults.append(f"{name}:{number}: {include}: {why}")
    return faults


def libraries(context: Context) -> list[str]:
    """A slow or dangerous library stays behind its fence."""
    faults = []
    for name in context.tree.sources(".hpp", ".cpp", under=("vk-provider/", "providers/")):
        for number, _, include in _includes(context, name):
            if include.startswith("boost/asio") and name.startswith(_PURE):
                faults.append(f"{name}:{number}: {include}: decisions and values know nothing of a loop")
            for library, places in _LIBRARIES:
                if not (include == library or (library.endswith("/") or "/" in library) and include.startswith(library)):
                    continue
                if not any(fnmatch.fnmatch(name, place) for place in places):
                    faults.append(f"{name}:{number}: {include}: allowed in {' '.join(places) or 'tests'} only")
    return faults


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


_COMMENTS_AND_STRINGS = re.compile(
    r'R"(?P<raw>[^(\s]{0,16})\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/',
    re.DOTALL,
)


def code_of(text: str) -> str:
    """The text with comments and literals blanked out; lines stay where they are."""
    return _COMMENTS_AND_STRINGS.sub(_blank, text)


def _find_all(context: Context, pattern: str, under: tuple[str, ...], why: str) -> list[str]:
    faults = []
    for name in context.tree.sources(".hpp", ".cpp", under=under):
        code = code_of(context.tree.text(name))
        for found in re.finditer(pattern, code):
            faults.append(f"{name}:{code.count(chr(10), 0, found.start()) + 1}: {found[0]}: {why}")
    return faults


def no_detached(context: Context) -> list[str]:
    """Nothing runs that nobody waits for; with detached an exception vanishes."""
    why = "spawn it in a TaskGroup"
    return _find_all(context, r"\basio::detached\b|\bdetached_t\b", ("vk-provider/", "providers/"), why)


def no_sleeping_tests(context: Context) -> list[str]:
    """A unit test waits in virtual time."""
    pattern = r"\bsleep_(?:for|until)\s*\((?=[^;]*;)|\b(?:u|nano)?sleep\s*\("
    faults = []
    for fault in _find_all(context, pattern, ("test/unit/",), "waits for real; use test/support/virtual_time.hpp"):
        name, line = fault.split(":")[:2]
        code = code_of(context.tree.text(name)).splitlines()[int(line) - 1]
        # Timers::sleep_for and sleep_until wait in virtual time.
        if "this_thread" in code or not re.search(r"(?:\.|->)\s*sleep_(?:for|until)", code):
            faults.append(fault)
    return faults


def _matching(code: str, start: int) -> int:
    """The position of the bracket that closes the one at `start`; -1 if there is none."""
    pairs = {"(": ")", "[": "]", "{": "}"}
    close, depth = pairs[code[start]], 0
    for position in range(start, len(code)):
        if code[position] == code[start]:
            depth += 1
        elif code[position] == close:
            depth -= 1
            if depth == 0:
                return position
    return -1


_LAMBDA_HEAD = re.compile(r"(?:\s*(?:mutable\b|noexcept\b|constexpr\b|static\b|->\s*[\w:<>,&*\s]+?))*\s*(?=\{)")


def capturing_coroutines(code: str) -> list[int]:
    """Positions of lambdas that capture something and whose own body is a coroutine."""
    lambdas = []  # (start, captures, body start, body end)
    for start in (m.start() for m in re.finditer(r"\[", code)):
        before = code[:start].rstrip()[-1:]
        if before.isalnum() or before in ("_", ")", "]", "["):  # a subscript or an attribute
            if not re.search(r"\b(?:return|co_return|co_await|co_yield)\s*$", code[:start]):
                continue
        end = _matching(code, start)
        if end < 0 or code[start + 1 : start + 2] == "[":
            continue
        position = end + 1
        parameters = re.match(r"\s*\(", code[position:])
        if parameters:
            position = _matching(code, position + parameters.end() - 1) + 1
        head = _LAMBDA_HEAD.match(code, position)
        if position <= 0 or not head:
            continue
        body_end = _matching(code, head.end())
        if body_end > 0:
            lambdas.append((start, code[start + 1 : end].strip(), head.end(), body_end))
    positions = []
    for start, captures, body, body_end in lambdas:
        own = code[body:body_end]
        for other, _, inner, inner_end in lambdas:
            if body < other and inner_end < body_end:  # what an inner lambda does is its own affair
                own = own.replace(code[inner:inner_end], "", 1)
        if captures and re.search(r"\bco_(?:await|return|yield)\b", own):
            positions.append(start)
    return positions


def no_capturing_coroutines(context: Context) -> list[str]:
    """The captures of a lambda coroutine live in the lambda, not in the frame: they dangle after its first wait."""
    faults = []
    for name in context.tree.sources(".hpp", ".cpp"):
        code = code_of(context.tree.text(name))
        for position in capturing_coroutines(code):
            line = code.count("\n", 0, position) + 1
            faults.append(f"{name}:{line}: a coroutine that captures; make it a function with value parameters")
    return faults
