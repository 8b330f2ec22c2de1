#include "vk-provider/api/serving_certificate.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "vk-provider/base/backoff.hpp"
#include "vk-provider/base/log.hpp"
#include "vk-provider/kube/credentials.hpp"

namespace spillway::api {
namespace log = base::log;
using base::ErrorKind;

namespace {

constexpr base::Duration kSelfSignedLife = std::chrono::hours(24 * 365);
constexpr base::Duration kClockSkew = std::chrono::minutes(5);
constexpr base::Duration kFilesEvery = std::chrono::seconds(30);
constexpr base::Duration kCallDeadline = std::chrono::seconds(10);
constexpr base::BackoffPolicy kAskAgain{std::chrono::seconds(10), std::chrono::minutes(10)};
constexpr base::BackoffPolicy kLookAgain{std::chrono::seconds(1), std::chrono::seconds(30)};
// A wall clock that jumps is noticed after this time.
constexpr base::Duration kLongestRest = std::chrono::hours(1);

constexpr std::array kSources{CertificateSource::kSelfSigned, CertificateSource::kCsr, CertificateSource::kFiles};

double unix_seconds(base::WallTime t) { return std::chrono::duration<double>(t.time_since_epoch()).count(); }

}  // namespace

std::string_view to_string(CertificateSource source) {
  switch (source) {
    case CertificateSource::kSelfSigned: return "self-signed";
    case CertificateSource::kCsr: return "csr";
    case CertificateSource::kFiles: break;
  }
  return "files";
}

base::WallTime renewal_time(const net::CertificateFacts& facts) {
  return facts.not_before + (facts.not_after - facts.not_before) / 5 * 4;
}

ServingCertificate::ServingCertificate(KubeletCertificateConfig config, net::CertificateSubject subject,
                                       std::string name_prefix, kube::KubeApi& api, async::Timers& timers,
                                       base::Metrics& metrics)
    : config_(std::move(config)),
      subject_(std::move(subject)),
      name_prefix_(std::move(name_prefix)),
      client_(api),
      timers_(timers),
      metrics_(metrics) {}

base::Result<CertificatePair> ServingCertificate::self_signed() const {
  CertificatePair pair;
  auto key = net::make_key();
  if (!key) return base::fail(std::move(key.error()));
  pair.key_pem = std::move(*key);
  const base::WallTime now = timers_.wall();
  const auto to_micros = [](base::Duration d) { return std::chrono::duration_cast<std::chrono::microseconds>(d); };
  auto certificate =
      net::self_sign(pair.key_pem, subject_, now - to_micros(kClockSkew), now + to_micros(kSelfSignedLife));
  if (!certificate) return base::fail(std::move(certificate.error()));
  pair.cert_pem = std::move(*certificate);
  return pair;
}

base::Result<CertificatePair> ServingCertificate::read_files() const {
  CertificatePair pair;
  auto certificate = kube::read_small_file(config_.cert_file);
  if (!certificate) return base::fail(std::move(certificate.error()));
  auto key = kube::read_small_file(config_.key_file);
  if (!key) return base::fail(std::move(key.error()));
  if (auto facts = net::read_certificate(*certificate); !facts) {
    return base::fail(ErrorKind::kInvalid, config_.cert_file + ": " + facts.error().message);
  }
  pair.cert_pem = std::move(*certificate);
  pair.key_pem = base::Secret(std::move(*key));
  return pair;
}

base::Result<CertificatePair> ServingCertificate::first() {
  const bool with_files = config_.source == CertificateSource::kFiles;
  auto pair = with_files ? read_files() : self_signed();
  if (!pair) return pair;
  note(with_files ? CertificateSource::kFiles : CertificateSource::kSelfSigned, *pair);
  if (config_.source == CertificateSource::kSelfSigned) {
    log::warn("the kubelet API shows a self-signed certificate, which nobody can verify",
              {{"remedy", "kubeletApi.certificate.source: csr or files; see vk-provider/docs/certificates.md"}});
  }
  return pair;
}

void ServingCertificate::note(CertificateSource source, const CertificatePair& pair) {
  auto facts = net::read_certificate(pair.cert_pem);
  if (!facts) return;
  facts_ = std::move(*facts);
  current_ = pair;
  in_use_ = source;
  for (const CertificateSource each : kSources) {
    metrics_
        .gauge("spillway_kubelet_certificate", "1: where the serving certificate in use comes from.",
               {{"source", std::string(to_string(each))}})
        .set(each == source ? 1 : 0);
  }
  metrics_
      .gauge("spillway_kubelet_certificate_expires_seconds",
             "When the serving certificate in use ends, in seconds since 1970.")
      .set(unix_seconds(facts_.not_after));
  log::info("the kubelet API has a certificate", {{"source", to_string(source)},
                                                  {"subject", facts_.subject},
                                                  {"issuer", facts_.issuer},
                                                  {"until", base::to_rfc3339(facts_.not_after)}});
}

async::Loop ServingCertificate::run(Use use) {
  switch (config_.source) {
    case CertificateSource::kSelfSigned: co_await renew_self_signed(std::move(use)); break;
    case CertificateSource::kCsr: co_await keep_issued(std::move(use)); break;
    case CertificateSource::kFiles: co_await follow_files(std::move(use)); break;
  }
}

boost::asio::awaitable<void> ServingCertificate::rest_until_renewal() {
  // Also of one that is over already: nobody is asked for certificates without a pause.
  co_await timers_.sleep_for(kAskAgain.first);
  for (;;) {
    const base::Duration left = renewal_time(facts_) - timers_.wall();
    if (left <= base::Duration(0)) co_return;
    co_await timers_.sleep_for(std::min(left, kLongestRest));
  }
}

async::Loop ServingCertificate::renew_self_signed(Use use) {
  for (;;) {
    co_await rest_until_renewal();
    const auto pair = self_signed();
    const auto used = pair ? use(*pair) : base::fail(pair.error());
    if (used) {
      note(CertificateSource::kSelfSigned, *pair);
    } else {
      log::error("a self-signed certificate cannot be made", {{"error", used.error()}});
      co_await timers_.sleep_for(kAskAgain.cap);
    }
  }
}

async::Loop ServingCertificate::follow_files(Use use) {
  std::string complaint;
  for (;;) {
    co_await timers_.sleep_for(kFilesEvery);
    const auto pair = read_files();
    if (pair && pair->cert_pem == current_.cert_pem && pair->key_pem == current_.key_pem) {
      complaint.clear();
      continue;
    }
    // Of two files that are replaced one after the other, the first one may be seen alone: then they do not fit.
    const auto used = pair ? use(*pair) : base::fail(pair.error());
    if (used) {
      note(CertificateSource::kFiles, *pair);
      complaint.clear();
    } else if (std::exchange(complaint, used.error().message) != used.error().message) {
      log::warn("the files of the serving certificate cannot be used; the last one stays in use",
                {{"certFile", config_.cert_file}, {"keyFile", config_.key_file}, {"error", used.error()}});
    }
  }
}

async::Loop ServingCertificate::keep_issued(Use use) {
  for (int failures = 0;;) {
    if (co_await request_one(use)) {
      failures = 0;
      co_await rest_until_renewal();
    } else {
      co_await timers_.sleep_for(base::backoff_delay(kAskAgain, ++failures));
    }
  }
}

boost::asio::awaitable<bool> ServingCertificate::request_one(const Use& use) {
  kube::SigningRequest request;
  request.name_prefix = name_prefix_;
  request.signer = config_.signer;
  CertificatePair pair;
  auto key = net::make_key();
  auto pem = key ? net::make_signing_request(*key, subject_) : base::fail(key.error());
  if (!pem) {
    log::error("a serving certificate cannot be asked for", {{"error", pem.error()}});
    co_return false;
  }
  pair.key_pem = std::move(*key);
  request.request_pem = std::move(*pem);
  const auto made = co_await client_.create_signing_request(std::move(request), timers_.now() + kCallDeadline);
  if (!made) {
    log::warn("a serving certificate cannot be asked for; trying again",
              {{"signer", config_.signer},
               {"error", made.error()},
               {"remedy", "check that config/deploy/rbac.yaml is applied"}});
    co_return false;
  }
  log::info("a serving certificate was asked for; somebody has to approve it",
            {{"signer", config_.signer}, {"approve", "kubectl certificate approve " + made->name}});
  pair.cert_pem = co_await wait_for(made->name);
  if (pair.cert_pem.empty()) co_return false;
  if (const auto used = use(pair); !used) {
    log::error("the serving certificate that was issued cannot be used",
               {{"request", made->name}, {"error", used.error()}});
    co_return false;
  }
  note(CertificateSource::kCsr, pair);
  co_return true;
}

boost::asio::awaitable<std::string> ServingCertificate::wait_for(std::string name) {
  using Step = kube::SigningState::Step;
  std::string complaint;
  for (int looks = 1;; ++looks) {
    co_await timers_.sleep_for(base::backoff_delay(kLookAgain, looks));
    const auto state = co_await client_.get_signing_request(name, timers_.now() + kCallDeadline);
    if (!state && state.error().kind == ErrorKind::kNotFound) {
      log::warn("the request for a serving certificate was forgotten without an answer; asking anew",
                {{"request", name}});
      co_return std::string();
    }
    // An API server that is away says nothing about the request.
    if (!state) {
      if (std::exchange(complaint, state.error().message) != state.error().message) {
        log::warn("the request for a serving certificate cannot be looked at; trying again",
                  {{"request", name}, {"error", state.error()}});
      }
      continue;
    }
    if (state->step == Step::kPending) continue;
    if (state->step == Step::kIssued) co_return state->certificate_pem;
    log::warn("the request for a serving certificate was refused", {{"request", name}, {"why", state->message}});
    co_return std::string();
  }
}

}  // namespace spillway::api
