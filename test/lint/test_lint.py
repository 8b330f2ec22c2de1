"""Each check finds the fault that is planted for it, and nothing in a clean tree."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import textwrap

import pytest

from test.lint import lint, text_checks

CLEAN = {
    "README.md": "A tree.\n",
    "vk-provider/base/number.hpp": """\
        // A number.
        #pragma once

        namespace spillway::base {

        inline int twice(int value) { return 2 * value; }

        }  // namespace spillway::base
        """,
    "vk-provider/core/decide.hpp": """\
        // A decision.
        #pragma once

        #include <string>

        #include "vk-provider/base/number.hpp"

        namespace spillway::core {

        std::string decide(int value);

        }  // namespace spillway::core
        """,
    "vk-provider/core/decide.cpp": """\
        #include "vk-provider/core/decide.hpp"

        namespace spillway::core {

        std::string decide(int value) {
          // asio::detached and std::this_thread::sleep_for( are only words here: "co_await".
          const auto doubled = [value] { return base::twice(value); };
          return std::to_string(doubled());
        }

        }  // namespace spillway::core
        """,
}


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for settings in (".clang-format", ".clang-tidy"):
        shutil.copy(lint.REPOSITORY / settings, tmp_path)
    (tmp_path / ".gitignore").write_text("/build/\n")
    for name, text in CLEAN.items():
        plant(tmp_path, name, text)
    return tmp_path


def plant(root: pathlib.Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))


def run(root: pathlib.Path, *checks: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [lint.REPOSITORY / "test/lint/run", "--root", root, *checks], capture_output=True, text=True, check=False
    )
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout.splitlines()


def test_a_clean_tree_passes_all_checks(tree: pathlib.Path) -> None:
    code, lines = run(tree)
    assert code == 0, lines
    assert lines[-1] == f"{len(lines) - 1} passed, 0 failed"
    assert all(line.startswith("ok ") for line in lines[:-1])


FAULTS = [
    ("tree", "notes.txt", "remember the milk\n", "notes.txt: does not belong to the top level"),
    ("arrows", "vk-provider/core/up.hpp", '#include "vk-provider/net/http.hpp"\n', "core/ may include base model only"),
    ("arrows", "vk-provider/base/up.hpp", '#include "vk-provider/model/offer.hpp"\n', "base/ may include nothing only"),
    ("arrows", "vk-provider/net/up.hpp", '#include "vk-provider/model/offer.hpp"\n', "net/ may include async base only"),
    ("arrows", "vk-provider/api/guest.hpp", '#include "providers/fake/cloud.hpp"\n', "the daemon knows no provider"),
    ("arrows", "vk-provider/odd/x.hpp", '#include "vk-provider/base/number.hpp"\n', "vk-provider/odd is no layer"),
    ("arrows", "vk-provider/base/t.hpp", '#include "test/support/virtual_time.hpp"\n', "only tests include test/"),
    ("arrows", "vk-provider/base/rel.hpp", '#include "number.hpp"\n', "our own paths begin at the root"),
    ("arrows", "vk-provider/core/angle.hpp", "#include <vk-provider/base/number.hpp>\n", "included with quotes"),
    ("arrows", "providers/fake/x.cpp", '#include "vk-provider/core/decide.hpp"\n', "a provider may include"),
    ("arrows", "providers/fake/x.cpp", '#include "vk-provider/kube/client.hpp"\n', "a provider may include"),
    ("arrows", "providers/fake/x.cpp", '#include "providers/docker/codec.hpp"\n', "a provider knows no other provider"),
    ("libraries", "vk-provider/kube/x.cpp", "#include <boost/beast/http.hpp>\n", "allowed in vk-provider/net/* only"),
    ("libraries", "providers/fake/x.cpp", "#include <openssl/sha.h>\n", "allowed in vk-provider/net/* only"),
    ("libraries", "vk-provider/kube/x.cpp", "#include <nlohmann/json.hpp>\n", "nlohmann/json.hpp: allowed in"),
    ("libraries", "vk-provider/kube/x_codec.hpp", "#include <nlohmann/json.hpp>\n", "nlohmann/json.hpp: allowed in"),
    ("libraries", "vk-provider/daemon/x.cpp", "#include <yaml-cpp/yaml.h>\n", "yaml-cpp/yaml.h: allowed in"),
    ("libraries", "vk-provider/daemon/x.cpp", "#include <spdlog/spdlog.h>\n", "spdlog/spdlog.h: allowed in"),
    ("libraries", "vk-provider/control/x.cpp", "#include <mutex>\n", "mutex: allowed in tests only"),
    ("libraries", "vk-provider/core/x.cpp", "#include <boost/asio/awaitable.hpp>\n", "know nothing of a loop"),
    ("no-detached", "vk-provider/net/x.cpp", "auto token = boost::asio::detached;\n", "spawn it in a TaskGroup"),
    ("no-detached", "providers/fake/x.cpp", "auto token = asio::detached;\n", "spawn it in a TaskGroup"),
    ("no-capturing-coroutines", "vk-provider/net/x.cpp",
     "auto f = [this, x]() -> asio::awaitable<void> { co_await x; };\n", "a coroutine that captures"),
    ("no-capturing-coroutines", "vk-provider/net/x.cpp",
     "void f(int x) {\n  g([&x] { co_return x; });\n}\n", "vk-provider/net/x.cpp:2: a coroutine that captures"),
    ("no-sleeping-tests", "test/unit/x_test.cpp", "void f() { std::this_thread::sleep_for(1s); }\n", "waits for real"),
    ("no-sleeping-tests", "test/unit/x_test.cpp", "void f() { usleep(1000); }\n", "waits for real"),
    ("format", "vk-provider/base/x.cpp", "int  f( ) {return 1;}\n", "not formatted; `make format`"),
    ("headers-alone", "vk-provider/base/x.hpp", "#pragma once\nstd::string f();\n", "does not compile alone"),
    ("headers-alone", "vk-provider/base/x.hpp", "#pragma once\ninline int f(int a) { long b = a; return b; }\n",
     "does not compile alone"),
    ("clang-tidy", "vk-provider/base/x.cpp", "int BadName() { return 1; }\n", "readability-identifier-naming"),
    ("clang-tidy", "vk-provider/base/x.cpp",
     "#include <string>\n#include <utility>\nstd::size_t f(std::string s) {\n  std::string t = std::move(s);\n"
     "  return s.size() + t.size();\n}\n", "bugprone-use-after-move"),
    ("clang-tidy", "vk-provider/base/x.cpp", "int broken(\n", "error"),
    ("test-names", "test/unit/x_test.cpp", "int BadName() { return 1; }\n", "readability-identifier-naming"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "name", "text", "said"), FAULTS)
def test_a_planted_fault_is_found(tree: pathlib.Path, check: str, name: str, text: str, said: str) -> None:
    plant(tree, name, text)
    code, lines = run(tree, check)
    assert code == 1
    assert lines[0].startswith(f"FAIL {check} ")
    assert any(said in line for line in lines[1:-1]), lines
    assert lines[-1] == "0 passed, 1 failed"


def test_a_fault_stays_found_and_its_repair_is_noticed(tree: pathlib.Path) -> None:
    plant(tree, "vk-provider/base/x.hpp", "#pragma once\nstd::string f();\n")
    assert run(tree, "headers-alone")[0] == 1
    assert run(tree, "headers-alone")[0] == 1
    plant(tree, "vk-provider/base/x.hpp", "#pragma once\n#include <string>\nstd::string f();\n")
    assert run(tree, "headers-alone")[0] == 0


def test_what_was_fine_is_looked_at_again_when_its_header_breaks(tree: pathlib.Path) -> None:
    plant(tree, "vk-provider/core/more.hpp", '#pragma once\n#include "vk-provider/core/decide.hpp"\n')
    assert run(tree, "headers-alone", "clang-tidy")[0] == 0
    plant(tree, "vk-provider/base/number.hpp", "#pragma once\nMissing f();\n")
    code, lines = run(tree, "headers-alone", "clang-tidy")
    assert code == 1
    assert any(line.strip().startswith("vk-provider/core/more.hpp: does not compile alone") for line in lines)
    assert any(line.startswith("FAIL clang-tidy") for line in lines)


def test_a_header_with_a_source_is_proven_by_it(tree: pathlib.Path) -> None:
    broken = CLEAN["vk-provider/core/decide.hpp"].replace("#include <string>", "")
    plant(tree, "vk-provider/core/decide.hpp", broken)
    assert run(tree, "clang-tidy")[0] == 1
    source = CLEAN["vk-provider/core/decide.cpp"]
    plant(tree, "vk-provider/core/decide.cpp", "#include <string>\n" + textwrap.dedent(source))
    assert run(tree, "clang-tidy")[0] == 0
    assert run(tree, "headers-alone")[0] == 1


def test_what_was_fine_is_looked_at_again_when_the_settings_change(tree: pathlib.Path) -> None:
    assert run(tree, "format")[0] == 0
    plant(tree, ".clang-format", "BasedOnStyle: Google\nIndentWidth: 7\n")
    assert run(tree, "format")[0] == 1


def test_an_unknown_check_is_refused() -> None:
    done = subprocess.run([lint.REPOSITORY / "test/lint/run", "spelling"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no check is called spelling" in done.stderr


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("auto f = [] { co_return; };", 0),
        ("auto f = [x]() mutable -> Task<int> { co_return x; };", 1),
        ("auto f = [x] { return x; };", 0),
        ("auto f = [&] { g([](int y) -> Loop { co_await y; }); };", 0),
        ("auto f = [] { g([&](int y) -> Loop { co_await y; }); };", 1),
        ("co_await table[x](y); a[i] = [] { return 1; };", 0),
        ("[[nodiscard]] int f() { co_await x; }", 0),
    ],
)
def test_lambdas_are_told_apart(code: str, count: int) -> None:
    assert len(text_checks.capturing_coroutines(code)) == count


def test_comments_and_literals_are_no_code() -> None:
    text = 'int a = 1\'000; // asio::detached\nauto s = R"x(asio::detached ")x"; /* asio::detached\n */ char c = \'"\'; go();\n'
    code = text_checks.code_of(text)
    assert "detached" not in code
    assert "go();" in code
    assert code.count("\n") == text.count("\n")
