#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "vk-provider/kube/kubeconfig.hpp"
#include "vk-provider/net/digest.hpp"

namespace kube = spillway::kube;
namespace base = spillway::base;
using spillway::net::base64_encode;

namespace {

/// A kubeconfig with the given lines in its one cluster and user.
std::string document(const std::string& cluster, const std::string& user) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: main\n"
         "clusters:\n- name: other\n  cluster: {server: 'https://other'}\n- name: home\n  cluster: {" +
         cluster +
         "}\n"
         "users:\n- name: robot\n  user: {" +
         user +
         "}\n"
         "contexts:\n- name: main\n  context: {cluster: home, user: robot}\n";
}

base::Result<kube::ClusterAccess> parse(const std::string& text, const std::string& directory = "/nonexistent") {
  return kube::parse_kubeconfig(text, directory, "config");
}

std::string refusal(const std::string& text) {
  const auto access = parse(text);
  REQUIRE_FALSE(access);
  CHECK(access.error().kind == base::ErrorKind::kInvalid);
  return access.error().message;
}

const std::string kServer = "server: 'https://10.0.0.1:6443'";

}  // namespace

TEST_CASE("a kubeconfig with a token is read") {
  const auto access =
      parse(document("server: 'https://[fd00::1]:6443/k8s/c-1/', tls-server-name: api, "
                     "certificate-authority-data: " +
                         base64_encode("CA"),
                     "token: abc, extensions: [{name: x}]"));
  REQUIRE(access);
  CHECK(access->endpoint.host == "fd00::1");
  CHECK(access->endpoint.port == 6443);
  CHECK(access->endpoint.server_name == "api");
  CHECK(access->endpoint.ca_pem == "CA");
  CHECK(access->path_prefix == "/k8s/c-1");
  CHECK(access->token.reveal() == "abc");
  CHECK(access->token_file.empty());
  CHECK(access->ns == "default");
}

TEST_CASE("a kubeconfig with a client certificate is read; data wins over files") {
  const auto access =
      parse(document(kServer, "client-certificate-data: " + base64_encode("CERT") +
                                  ", client-certificate: /nonexistent/c, client-key-data: " + base64_encode("KEY")));
  REQUIRE(access);
  CHECK(access->endpoint.client_cert_pem == "CERT");
  CHECK(access->endpoint.client_key_pem.reveal() == "KEY");
  CHECK(access->token.empty());
}

TEST_CASE("files are found beside the kubeconfig") {
  std::string name = (std::filesystem::temp_directory_path() / "spillway-XXXXXX").string();
  const std::filesystem::path dir = ::mkdtemp(name.data());
  std::filesystem::create_directory(dir / "pki");
  std::ofstream(dir / "pki/ca.crt") << "CA";
  std::ofstream(dir / "pki/c.crt") << "CERT";
  std::ofstream(dir / "c.key") << "KEY";
  std::ofstream(dir / "token") << "tok\n";
  std::ofstream(dir / "config") << document(
      kServer + ", certificate-authority: pki/ca.crt",
      "client-certificate: pki/c.crt, client-key: " + (dir / "c.key").string() + ", token: old, tokenFile: token");
  const auto access = kube::load_kubeconfig(dir / "config");
  REQUIRE(access);
  CHECK(access->endpoint.ca_pem == "CA");
  CHECK(access->endpoint.client_cert_pem == "CERT");
  CHECK(access->endpoint.client_key_pem.reveal() == "KEY");
  CHECK(access->token.reveal() == "tok");
  CHECK(access->token_file == (dir / "token").string());
  std::filesystem::remove_all(dir);
}

TEST_CASE("what is not done is refused by key, with a remedy") {
  const std::string ok_user = "token: abc";
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {document(kServer + ", insecure-skip-tls-verify: true", ok_user),
       {"clusters[1].cluster.insecure-skip-tls-verify", "certificate-authority-data"}},
      {document(kServer + ", insecure-skip-tls-verify: yes", ok_user), {"insecure-skip-tls-verify"}},
      {document(kServer + ", proxy-url: 'http://p'", ok_user), {"clusters[1].cluster.proxy-url", "directly"}},
      {document(kServer, "exec: {command: aws}"), {"users[0].user.exec", "tokenFile"}},
      {document(kServer, "token: abc, exec: {command: aws}"), {"users[0].user.exec"}},
      {document(kServer, "auth-provider: {name: gcp}"), {"users[0].user.auth-provider", "tokenFile"}},
      {document(kServer, "username: a, password: b"), {"users[0].user.username", "users[0].user.password"}},
      {document(kServer, "token: abc, as: admin"), {"users[0].user.as:", "impersonation"}},
      {document(kServer, ""), {"users[0].user: has no credentials"}},
      {document(kServer, "client-key-data: " + base64_encode("KEY")), {"users[0].user.client-certificate-data"}},
      {document(kServer, "client-certificate-data: " + base64_encode("C")), {"users[0].user.client-key-data"}},
      {document(kServer, "client-certificate-data: '%%', client-key-data: x"),
       {"users[0].user.client-certificate-data: is not base64", "users[0].user.client-key-data: is not base64"}},
      {document(kServer, "tokenFile: token"), {"users[0].user.tokenFile", "/nonexistent/token"}},
      {document(kServer + ", certificate-authority: ca", ok_user),
       {"clusters[1].cluster.certificate-authority", "/nonexistent/ca"}},
      {document("", ok_user), {"clusters[1].cluster.server: is missing"}},
      {document("server: {a: b}", ok_user), {"clusters[1].cluster.server: must be a text"}},
      {document("server: 10.0.0.1", ok_user), {"clusters[1].cluster.server", "https://"}},
      {document("server: 'http://10.0.0.1'", ok_user), {"clusters[1].cluster.server", "in clear"}},
  };
  for (const auto& [text, expected] : cases) {
    CAPTURE(text);
    const std::string message = refusal(text);
    CHECK_THAT(message, Catch::StartsWith("config cannot be used:"));
    for (const std::string& part : expected) CHECK_THAT(message, Catch::Contains(part));
  }
}

TEST_CASE("all faults are reported at once") {
  const std::string message = refusal(
      document("server: nowhere, proxy-url: p, insecure-skip-tls-verify: true", "exec: {command: x}, username: u"));
  for (const char* key : {".server", ".proxy-url", ".insecure-skip-tls-verify", ".exec", ".username"}) {
    CHECK_THAT(message, Catch::Contains(key));
  }
}

TEST_CASE("verification that is switched on, and plain HTTP on this machine, are fine") {
  CHECK(parse(document(kServer + ", insecure-skip-tls-verify: false", "token: abc")));
  CHECK(parse(document("server: 'http://127.0.0.1:8080'", "token: abc")));
}

TEST_CASE("a document that leads nowhere is refused") {
  CHECK_THAT(refusal("{}"), Catch::Contains("current-context: is missing"));
  CHECK_THAT(refusal("[a]"), Catch::Contains("must be a mapping"));
  CHECK_THAT(refusal(""), Catch::Contains("must be a mapping"));
  CHECK_THAT(refusal("a: [\n"), Catch::Contains("is not valid YAML"));
  CHECK_THAT(refusal("current-context: x"), Catch::Contains("contexts: has no entry called \"x\""));
  CHECK_THAT(refusal("current-context: x\ncontexts: [{name: x, context: {user: u}}]"),
             Catch::Contains("contexts[0].context.cluster: is missing") && Catch::Contains("users: has no entry"));
  CHECK_THAT(refusal("current-context: x\ncontexts: [{name: x, context: 7}]"),
             Catch::Contains("contexts[0].context: must be a mapping"));
  CHECK_THAT(kube::load_kubeconfig("/nonexistent/config").error().message, Catch::Contains("/nonexistent/config"));
}

TEST_CASE("a broken document is not quoted: it may hold a key") {
  CHECK_THAT(refusal("token: hunter2\n  bad: [\n"), !Catch::Contains("hunter2"));
}
