// Processes and ports of containers on an engine that is reached over TCP with TLS and certificates of both sides.
//
// SPILLWAY_TEST_DOCKER_TLS names the engine's host:port, SPILLWAY_TEST_DOCKER_CERTIFICATES a folder with ca.crt,
// client.crt, client.key, and other.crt of a CA that issued nothing.
#include <fstream>
#include <iterator>

#include "test/integration/docker_exec_fixture.hpp"

using namespace std::chrono_literals;
using namespace spillway::test;
namespace base = spillway::base;
namespace net = spillway::net;
namespace provider = spillway::provider;
namespace providers = spillway::providers;
using base::ErrorKind;

namespace {

std::string file(const std::string& name) {
  std::ifstream in(from_runner("SPILLWAY_TEST_DOCKER_CERTIFICATES", "a folder with certificates") + "/" + name);
  if (!in) throw std::runtime_error(name + " cannot be read");
  return {std::istreambuf_iterator<char>(in), {}};
}

providers::docker::HostConfig tls_host() {
  const std::string address = from_runner("SPILLWAY_TEST_DOCKER_TLS", "the host:port of a Docker engine");
  const size_t colon = address.rfind(':');
  providers::docker::HostConfig host = DockerFixture::host_config();
  host.endpoint = net::Endpoint();
  host.endpoint.scheme = net::Endpoint::Scheme::kHttps;
  host.endpoint.host = address.substr(0, colon);
  host.endpoint.port = static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1)));
  host.endpoint.ca_pem = file("ca.crt");
  host.endpoint.client_cert_pem = file("client.crt");
  host.endpoint.client_key_pem = base::Secret(file("client.key"));
  return host;
}

class TlsFixture : public ExecFixture {
 public:
  TlsFixture() { restart_daemon(tls_host()); }
};

}  // namespace

TEST_CASE_METHOD(TlsFixture, "docker over TLS: the end of input is passed on, and the output comes whole after it",
                 "[docker]") {
  start_pod("spw-it-tls-1");
  provider::ExecOptions cat = shell("cat; echo done >&2; exit 7");
  cat.stdin_open = true;
  auto session = open(cat);
  REQUIRE(session);
  check_copied(*(*session)->input(), (*session)->output(), 20'000'000);
  const Finished finished = finish(**session);
  CHECK(finished.errors == "done\n");
  CHECK(finished.exit_code == 7);
}

TEST_CASE_METHOD(TlsFixture, "docker over TLS: the halves of a connection to a port end by themselves", "[docker]") {
  start_pod("spw-it-tls-2", pod("exec nc -ll -p 7000 -e sh -c 'cat; echo after'"));
  auto stream = dial_soon(7000);
  REQUIRE(reactor.run(stream->write("before\n", soon())));
  REQUIRE(reactor.run(stream->close_write(soon())));
  CHECK(reactor.run(read_all(*stream, soon())) == "before\nafter\n");
}

TEST_CASE_METHOD(DockerFixture, "docker over TLS: without our certificate the engine says no, and nothing is bought",
                 "[docker]") {
  providers::docker::HostConfig host = tls_host();
  host.endpoint.client_cert_pem.clear();
  host.endpoint.client_key_pem = base::Secret();
  restart_daemon(std::move(host));
  const auto refused = create(placement("spw-it-tls-3"), lasting_pod());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::kUnavailable);
}

TEST_CASE_METHOD(DockerFixture, "docker over TLS: an engine with a certificate of another CA is not spoken to",
                 "[docker]") {
  providers::docker::HostConfig host = tls_host();
  host.endpoint.ca_pem = file("other.crt");
  restart_daemon(std::move(host));
  const auto refused = create(placement("spw-it-tls-4"), lasting_pod());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::kUnavailable);
  CHECK(says(refused.error().message, "certificate"));
}
