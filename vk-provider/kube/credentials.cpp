#include "vk-provider/kube/credentials.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <vector>

#include "vk-provider/base/log.hpp"
#include "vk-provider/net/url.hpp"

namespace spillway::kube {
namespace {

constexpr base::Duration kTokenLife = std::chrono::seconds(60);
constexpr size_t kMaxFile = 1024 * 1024;

std::string trimmed(const std::string& text) {
  static constexpr const char* kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

}  // namespace

base::Result<std::string> read_small_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxFile + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad() || (file.gcount() == 0 && errno != 0)) {
    const int error = errno != 0 ? errno : EIO;
    return base::fail(base::ErrorKind::kInvalid, "cannot read " + path + ": " + std::generic_category().message(error));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxFile) return base::fail(base::ErrorKind::kInvalid, path + " is larger than 1 MiB");
  return text;
}

base::Result<base::Secret> read_token_file(const std::string& path) {
  base::Result<std::string> text = read_small_file(path);
  if (!text) return base::fail(text.error());
  base::Secret token(trimmed(*text));
  explicit_bzero(text->data(), text->size());
  if (token.empty()) return base::fail(base::ErrorKind::kInvalid, path + " is empty; a token is expected there");
  for (const char c : token.reveal()) {
    if (static_cast<unsigned char>(c) <= ' ') {
      return base::fail(base::ErrorKind::kInvalid,
                        path + " holds more than one word; a single token is expected there");
    }
  }
  return token;
}

Credentials::Credentials(const ClusterAccess& access, const base::Clock& clock)
    : token_(access.token), token_file_(access.token_file), clock_(clock), read_at_(clock.now()) {}

const base::Secret& Credentials::bearer() {
  if (!token_file_.empty() && clock_.now() - read_at_ >= kTokenLife) reload();
  return token_;
}

bool Credentials::reload() {
  if (token_file_.empty()) return false;
  read_at_ = clock_.now();
  base::Result<base::Secret> fresh = read_token_file(token_file_);
  if (!fresh) {
    base::log::warn("token file cannot be read, the last token stays in use", {{"error", fresh.error()}});
    return false;
  }
  if (*fresh == token_) return false;
  token_ = std::move(*fresh);
  return true;
}

base::Result<ClusterAccess> in_cluster_access(const std::string& host, const std::string& port,
                                              const std::string& directory) {
  if (host.empty() || port.empty()) {
    return base::fail(base::ErrorKind::kInvalid,
                      "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: not inside a pod; "
                      "use --kubeconfig");
  }
  const bool is_v6 = host.find(':') != std::string::npos;
  const base::Result<net::Url> url = net::parse_url("https://" + (is_v6 ? "[" + host + "]" : host) + ":" + port);
  if (!url) {
    return base::fail(base::ErrorKind::kInvalid,
                      "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT: " + url.error().message);
  }
  ClusterAccess access;
  access.endpoint = url->endpoint;
  access.token_file = directory + "/token";

  base::Result<base::Secret> token = read_token_file(access.token_file);
  base::Result<std::string> ca = read_small_file(directory + "/ca.crt");
  if (!token || !ca) {
    return base::fail(base::ErrorKind::kInvalid, "service account: " + (!token ? token.error() : ca.error()).message +
                                                     "; set automountServiceAccountToken: true or use --kubeconfig");
  }
  if (trimmed(*ca).empty()) {
    return base::fail(base::ErrorKind::kInvalid, "service account: " + directory + "/ca.crt is empty");
  }
  access.token = std::move(*token);
  access.endpoint.ca_pem = std::move(*ca);
  const base::Result<std::string> ns = read_small_file(directory + "/namespace");
  access.ns = ns ? trimmed(*ns) : std::string();
  if (access.ns.empty()) access.ns = "default";
  return access;
}

}  // namespace spillway::kube
