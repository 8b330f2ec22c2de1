#include "vk-provider/api/serving_certificate.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "test/support/certificates.hpp"
#include "test/support/scripted_kube_api.hpp"
#include "test/support/virtual_time.hpp"
#include "vk-provider/api/client_ca.hpp"
#include "vk-provider/async/task_group.hpp"
#include "vk-provider/net/digest.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::api;
using Json = nlohmann::json;

namespace {

net::CertificateSubject a_node() {
  net::CertificateSubject subject;
  subject.common_name = "system:node:burst";
  subject.organizations = {"system:nodes"};
  subject.dns_names = {"burst"};
  subject.ip_addresses = {"198.51.100.10"};
  return subject;
}

/// An operator's directory, gone with the test.
struct Scratch {
  Scratch() : path(std::filesystem::temp_directory_path() / ("spillway-tls-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path);
  }
  ~Scratch() { std::filesystem::remove_all(path); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return (path / name).string();
  }

  std::filesystem::path path;
};

/// A certificate and what it is asked for; the API server signs as it is told.
class Desk {
 public:
  explicit Desk(const KubeletCertificateConfig& config) {
    certificate =
        std::make_unique<ServingCertificate>(config, a_node(), "spillway-home-", api, reactor.timers, metrics);
    api.handler = [this](const kube::KubeRequest& request) { return answer(request); };
  }
  ~Desk() { reactor.run(group.stop()); }

  void run() {
    group.spawn(certificate->run([this](const CertificatePair& pair) { return take(pair); }));
  }
  bool shows(const std::string& line) const { return metrics.to_text().find(line) != std::string::npos; }

  test::VirtualReactor reactor;
  test::ScriptedKubeApi api{reactor.timers};
  base::Metrics metrics;
  std::unique_ptr<ServingCertificate> certificate;
  std::vector<CertificatePair> used;
  bool fits = true;  // what is handed out is accepted
  std::vector<Json> requests;
  std::function<base::Result<Json>()> status = [] { return base::Result<Json>(Json::object()); };
  async::TaskGroup group{reactor.ctx.get_executor()};

 private:
  base::Result<void> take(const CertificatePair& pair) {
    if (!fits) return base::fail(base::ErrorKind::kInvalid, "the key does not belong to it");
    used.push_back(pair);
    return {};
  }
  std::optional<base::Result<kube::KubeResponse>> answer(const kube::KubeRequest& request) {
    if (request.method == net::Method::kPost) requests.push_back(Json::parse(request.body));
    const auto now = status();
    if (!now) return base::fail(now.error());
    kube::KubeResponse response;
    response.body = Json{{"metadata", {{"name", "csr-1"}}}, {"status", *now}}.dump();
    return response;
  }
};

KubeletCertificateConfig by(CertificateSource source) {
  KubeletCertificateConfig config;
  config.source = source;
  return config;
}

/// As the signer returns it: for a year from the test's beginning, signed by whomever.
Json issued(const test::VirtualReactor& reactor, base::Duration life = 24h * 365) {
  const auto key = net::make_key();
  const base::WallTime now = reactor.timers.wall();
  const auto pem =
      net::self_sign(*key, a_node(), now, now + std::chrono::duration_cast<std::chrono::microseconds>(life));
  return {{"certificate", net::base64_encode(*pem)}};
}

}  // namespace

TEST_CASE("a self-signed certificate speaks for the node, and is renewed after four fifths of its life") {
  Desk desk(by(CertificateSource::kSelfSigned));
  const auto first = desk.certificate->first();
  REQUIRE(first.has_value());
  const auto facts = net::read_certificate(first->cert_pem);
  REQUIRE(facts.has_value());
  CHECK(facts->ip_addresses == std::vector<std::string>{"198.51.100.10"});
  CHECK(facts->not_after - desk.reactor.timers.wall() == 24h * 365);
  CHECK(desk.shows("spillway_kubelet_certificate{source=\"self-signed\"} 1"));
  CHECK(desk.shows("spillway_kubelet_certificate{source=\"csr\"} 0"));
  desk.run();
  desk.reactor.run_for(24h * 291);
  CHECK(desk.used.empty());
  desk.reactor.run_for(24h * 2);
  REQUIRE(desk.used.size() == 1);
  CHECK(desk.used[0].cert_pem != first->cert_pem);
  CHECK(desk.requests.empty());
}

TEST_CASE("a certificate is asked for, waited for and renewed, and meanwhile there is a self-signed one") {
  Desk desk(by(CertificateSource::kCsr));
  REQUIRE(desk.certificate->first().has_value());
  CHECK(desk.certificate->source() == CertificateSource::kSelfSigned);
  desk.run();
  desk.reactor.run_for(1h);
  CHECK(desk.used.empty());
  REQUIRE(desk.requests.size() == 1);
  CHECK(desk.requests[0]["metadata"]["generateName"] == "spillway-home-");
  CHECK(desk.requests[0]["spec"]["signerName"] == "kubernetes.io/kubelet-serving");
  // Nobody is asked more often than twice a minute, however long it takes.
  CHECK(desk.api.requests.size() < 130);
  desk.status = [&] { return base::Result<Json>(issued(desk.reactor)); };
  desk.reactor.run_for(31s);
  REQUIRE(desk.used.size() == 1);
  CHECK(desk.certificate->source() == CertificateSource::kCsr);
  CHECK(desk.shows("spillway_kubelet_certificate{source=\"csr\"} 1"));
  desk.reactor.run_for(24h * 290);
  CHECK(desk.requests.size() == 1);
  desk.reactor.run_for(24h * 3);
  CHECK(desk.requests.size() == 2);
  CHECK(desk.used.size() == 2);
}

TEST_CASE("a request that is refused, forgotten or answered with rubbish is made anew after a while") {
  Desk desk(by(CertificateSource::kCsr));
  REQUIRE(desk.certificate->first().has_value());
  SECTION("refused") {
    desk.status = [] {
      return base::Result<Json>(Json{{"conditions", {{{"type", "Denied"}, {"reason", "No"}, {"message", "no"}}}}});
    };
  }
  SECTION("forgotten") {
    desk.status = [&]() -> base::Result<Json> {
      if (desk.api.requests.back().method == net::Method::kPost) return Json::object();
      return base::fail(base::ErrorKind::kNotFound, "not found");
    };
  }
  SECTION("for another key") {
    desk.fits = false;
    desk.status = [&] { return base::Result<Json>(issued(desk.reactor)); };
  }
  SECTION("not allowed to ask") {
    desk.status = [] { return base::Result<Json>(base::fail(base::ErrorKind::kPermission, "forbidden")); };
  }
  desk.run();
  desk.reactor.run_for(1h);
  CHECK(desk.used.empty());
  CHECK(desk.requests.size() > 3);
  CHECK(desk.requests.size() < 15);
  desk.fits = true;
  desk.status = [&] { return base::Result<Json>(issued(desk.reactor)); };
  desk.reactor.run_for(11min);
  CHECK(desk.used.size() == 1);
}

TEST_CASE("an API server that is away for a while says nothing about a request") {
  Desk desk(by(CertificateSource::kCsr));
  REQUIRE(desk.certificate->first().has_value());
  desk.run();
  desk.reactor.run_for(10s);
  desk.status = [] { return base::Result<Json>(base::fail(base::ErrorKind::kUnavailable, "away")); };
  desk.reactor.run_for(10min);
  desk.status = [&] { return base::Result<Json>(issued(desk.reactor)); };
  desk.reactor.run_for(31s);
  CHECK(desk.used.size() == 1);
  CHECK(desk.requests.size() == 1);
}

TEST_CASE("files are read at the start, and again when they change as a pair") {
  const Scratch scratch;
  const test::Certificate ca = test::make_ca("an operator");
  const test::Certificate one = test::issue(ca, "burst", {"IP:198.51.100.10"});
  const test::Certificate two = test::issue(ca, "burst", {"IP:198.51.100.10"});
  KubeletCertificateConfig config = by(CertificateSource::kFiles);
  config.cert_file = scratch.write("tls.crt", one.cert_pem);
  config.key_file = scratch.write("tls.key", one.key_pem.reveal());
  Desk desk(config);
  const auto first = desk.certificate->first();
  REQUIRE(first.has_value());
  CHECK(first->cert_pem == one.cert_pem);
  CHECK(desk.shows("spillway_kubelet_certificate{source=\"files\"} 1"));
  desk.run();
  desk.reactor.run_for(2min);
  CHECK(desk.used.empty());
  scratch.write("tls.crt", two.cert_pem);
  desk.fits = false;
  desk.reactor.run_for(1min);
  CHECK(desk.used.empty());
  scratch.write("tls.key", two.key_pem.reveal());
  desk.fits = true;
  desk.reactor.run_for(1min);
  REQUIRE(desk.used.size() == 1);
  CHECK(desk.used[0].cert_pem == two.cert_pem);
  CHECK(desk.used[0].key_pem == two.key_pem);
}

TEST_CASE("files that cannot be used are told at the start") {
  const Scratch scratch;
  KubeletCertificateConfig config = by(CertificateSource::kFiles);
  config.cert_file = scratch.write("tls.crt", "no certificate");
  config.key_file = scratch.write("tls.key", "no key");
  Desk desk(config);
  CHECK(desk.certificate->first().error().message == config.cert_file + ": there is no certificate in the PEM text");
  std::filesystem::remove(config.key_file);
  CHECK(desk.certificate->first().error().message.starts_with("cannot read " + config.key_file));
}

TEST_CASE("the client CA is read, read again each hour, and at once when somebody is not believed") {
  test::VirtualReactor reactor;
  test::ScriptedKubeApi api(reactor.timers);
  std::string ca = "CA 1";
  api.handler = [&](const kube::KubeRequest&) -> std::optional<base::Result<kube::KubeResponse>> {
    if (ca.empty()) return base::fail(base::ErrorKind::kPermission, "configmaps is forbidden");
    kube::KubeResponse response;
    response.body = Json{{"data", {{"client-ca-file", ca}}}}.dump();
    return response;
  };
  std::vector<std::string> used;
  async::TaskGroup group(reactor.ctx.get_executor());
  ClientCa client_ca("", api, reactor.timers);
  CHECK_FALSE(client_ca.problem().empty());
  group.spawn(client_ca.run([&](const std::string& pem) {
    used.push_back(pem);
    return base::Result<void>();
  }));
  reactor.run_for(1s);
  CHECK(used == std::vector<std::string>{"CA 1"});
  CHECK(client_ca.problem().empty());
  reactor.run_for(59min);
  CHECK(api.requests.size() == 1);
  reactor.run_for(2min);
  CHECK(api.requests.size() == 2);
  CHECK(used.size() == 1);
  reactor.run_for(1min);
  ca = "CA 2";
  client_ca.doubt();
  reactor.run_for(1s);
  CHECK(used == std::vector<std::string>{"CA 1", "CA 2"});
  // A stranger who knocks all the time is heard each half minute.
  for (int i = 0; i < 60; ++i) {
    client_ca.doubt();
    reactor.run_for(1s);
  }
  CHECK(api.requests.size() <= 5);
  ca.clear();
  reactor.run_for(2h);
  CHECK(client_ca.problem().empty());
  CHECK(used.size() == 2);
  reactor.run(group.stop());
}

TEST_CASE("while the client CA cannot be read it is asked for again, and said why") {
  test::VirtualReactor reactor;
  test::ScriptedKubeApi api(reactor.timers);
  api.fail(base::Error(base::ErrorKind::kPermission, "configmaps is forbidden"));
  api.answer(R"({"data":{"client-ca-file":"CA"}})");
  std::vector<std::string> used;
  async::TaskGroup group(reactor.ctx.get_executor());
  ClientCa client_ca("", api, reactor.timers);
  group.spawn(client_ca.run([&](const std::string& pem) {
    used.push_back(pem);
    return base::Result<void>();
  }));
  reactor.settle();
  CHECK(client_ca.problem() == "configmaps is forbidden");
  reactor.run_for(2s);
  CHECK(client_ca.problem().empty());
  CHECK(used == std::vector<std::string>{"CA"});
  reactor.run(group.stop());
}
