// The certificate by which the kubelet API shows itself: made, asked for or read, and renewed in time.
//
// Owned by the kubelet API, one for all nodes; reactor thread only. The key lives in this process (or in the operator's
// files) and nowhere else, so a new process asks for a new certificate. Until one that was asked for is issued, and
// when none is, a self-signed one is in use; which it is, is a metric and a line in the log.
#pragma once

#include <functional>
#include <string>

#include "vk-provider/api/kubelet_config.hpp"
#include "vk-provider/async/timer.hpp"
#include "vk-provider/base/metrics.hpp"
#include "vk-provider/kube/access_client.hpp"
#include "vk-provider/net/certificate.hpp"

namespace spillway::api {

struct CertificatePair {
  CertificatePair() = default;
  std::string cert_pem;  // the chain, leaf first
  base::Secret key_pem;
};

class ServingCertificate {
 public:
  /// Begins to use it. kInvalid if key and certificate do not belong together: the last one stays in use.
  using Use = std::function<base::Result<void>(const CertificatePair&)>;

  /// `subject` is what it is asked or made for; `name_prefix` begins the name of a CertificateSigningRequest.
  ServingCertificate(KubeletCertificateConfig config, net::CertificateSubject subject, std::string name_prefix,
                     kube::KubeApi& api, async::Timers& timers, base::Metrics& metrics);

  /// What to begin with: the files, or one that is self-signed. kInvalid if the files cannot be used.
  base::Result<CertificatePair> first();
  /// Keeps it good; runs until it is cancelled. `use` outlives it.
  async::Loop run(Use use);

  /// Where the one in use comes from.
  CertificateSource source() const { return in_use_; }

 private:
  async::Loop renew_self_signed(Use use);
  async::Loop follow_files(Use use);
  async::Loop keep_issued(Use use);
  /// One request, from its making to the answer. True if a certificate came of it.
  boost::asio::awaitable<bool> request_one(const Use& use);
  /// Empty: refused or forgotten, and said so in the log.
  boost::asio::awaitable<std::string> wait_for(std::string name);
  boost::asio::awaitable<void> rest_until_renewal();

  base::Result<CertificatePair> self_signed() const;
  base::Result<CertificatePair> read_files() const;
  void note(CertificateSource source, const CertificatePair& pair);

  KubeletCertificateConfig config_;
  net::CertificateSubject subject_;
  std::string name_prefix_;
  kube::AccessClient client_;
  async::Timers& timers_;
  base::Metrics& metrics_;
  CertificateSource in_use_ = CertificateSource::kSelfSigned;
  CertificatePair current_;
  net::CertificateFacts facts_;  // of the current one
};

/// When a certificate is to be replaced: after four fifths of its life.
base::WallTime renewal_time(const net::CertificateFacts& facts);

}  // namespace spillway::api
