#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "test/support/virtual_time.hpp"
#include "vk-provider/kube/credentials.hpp"

using namespace std::chrono_literals;
namespace kube = spillway::kube;
namespace base = spillway::base;
using base::ErrorKind;

namespace {

struct Directory {
  Directory() {
    std::string name = (std::filesystem::temp_directory_path() / "spillway-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Directory() { std::filesystem::remove_all(path); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path / name) << text; }
  std::string operator/(const std::string& name) const { return (path / name).string(); }
  std::filesystem::path path;
};

}  // namespace

TEST_CASE("the service account of a pod is found") {
  const Directory dir;
  dir.write("token", "abc.def\n");
  dir.write("ca.crt", "PEM");
  dir.write("namespace", "burst\n");
  const auto access = kube::in_cluster_access("10.0.0.1", "443", dir.path);
  REQUIRE(access);
  CHECK(access->endpoint.scheme == spillway::net::Endpoint::Scheme::kHttps);
  CHECK(access->endpoint.host == "10.0.0.1");
  CHECK(access->endpoint.port == 443);
  CHECK(access->endpoint.ca_pem == "PEM");
  CHECK(access->token.reveal() == "abc.def");
  CHECK(access->token_file == dir / "token");
  CHECK(access->ns == "burst");
  CHECK(kube::in_cluster_access("fd00::1", "6443", dir.path)->endpoint.host == "fd00::1");

  std::filesystem::remove(dir / "namespace");
  CHECK(kube::in_cluster_access("10.0.0.1", "443", dir.path)->ns == "default");
}

TEST_CASE("a service account that is not usable is refused, and says what is missing") {
  const Directory dir;
  const auto refusal = [&](const char* host, const char* port) {
    const auto access = kube::in_cluster_access(host, port, dir.path);
    REQUIRE_FALSE(access);
    CHECK(access.error().kind == ErrorKind::kInvalid);
    return access.error().message;
  };
  CHECK_THAT(refusal("", "443"), Catch::Contains("KUBERNETES_SERVICE_HOST"));
  CHECK_THAT(refusal("10.0.0.1", ""), Catch::Contains("--kubeconfig"));
  CHECK_THAT(refusal("10.0.0.1", "x"), Catch::Contains("port"));
  CHECK_THAT(refusal("10.0.0.1", "443"), Catch::Contains(dir / "token") && Catch::Contains("No such file"));
  dir.write("token", " \n");
  CHECK_THAT(refusal("10.0.0.1", "443"), Catch::Contains("empty"));
  dir.write("token", "two words\n");
  CHECK_THAT(refusal("10.0.0.1", "443"), Catch::Contains("single token") && !Catch::Contains("two words"));
  dir.write("token", "t");
  CHECK_THAT(refusal("10.0.0.1", "443"), Catch::Contains(dir / "ca.crt"));
  // Without it the system's CAs would be believed.
  dir.write("ca.crt", "\n");
  CHECK_THAT(refusal("10.0.0.1", "443"), Catch::Contains("ca.crt is empty"));
}

TEST_CASE("a token file is read again after a minute, and the last good token kept") {
  spillway::test::VirtualReactor r;
  const Directory dir;
  dir.write("token", "one");
  kube::ClusterAccess access;
  access.token = base::Secret("one");
  access.token_file = dir / "token";
  kube::Credentials credentials(access, r.timers);

  dir.write("token", "two");
  r.run_for(59s);
  CHECK(credentials.bearer().reveal() == "one");
  r.run_for(1s);
  CHECK(credentials.bearer().reveal() == "two");

  std::filesystem::remove(dir / "token");
  r.run_for(60s);
  CHECK(credentials.bearer().reveal() == "two");
  dir.write("token", "three");
  r.run_for(59s);
  CHECK(credentials.bearer().reveal() == "two");
  r.run_for(1s);
  CHECK(credentials.bearer().reveal() == "three");
}

TEST_CASE("a reload reads at once and says whether the token is another one") {
  spillway::test::VirtualReactor r;
  const Directory dir;
  dir.write("token", "one");
  kube::ClusterAccess access;
  access.token = base::Secret("one");
  access.token_file = dir / "token";
  kube::Credentials credentials(access, r.timers);
  CHECK_FALSE(credentials.reload());
  dir.write("token", "two");
  CHECK(credentials.reload());
  CHECK(credentials.bearer().reveal() == "two");
  std::filesystem::remove(dir / "token");
  CHECK_FALSE(credentials.reload());
  CHECK(credentials.bearer().reveal() == "two");

  access.token_file.clear();
  kube::Credentials fixed(access, r.timers);
  CHECK_FALSE(fixed.reload());
  CHECK(fixed.bearer().reveal() == "one");
}
