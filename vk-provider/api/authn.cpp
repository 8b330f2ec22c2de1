#include "vk-provider/api/authn.hpp"

#include <utility>

#include "vk-provider/base/log.hpp"
#include "vk-provider/net/digest.hpp"

namespace spillway::api {
namespace log = base::log;

namespace {

constexpr base::Duration kTokenLife = std::chrono::minutes(2);
// Long enough that who repeats it does not fill the API server.
constexpr base::Duration kBadTokenLife = std::chrono::seconds(10);
constexpr base::Duration kAllowedLife = std::chrono::minutes(5);
constexpr base::Duration kDeniedLife = std::chrono::seconds(30);
constexpr size_t kAnswers = 1024;  // of each kind
constexpr size_t kReviewsAtOnce = 16;

constexpr int kUnauthorized = 401;
constexpr int kForbidden = 403;
constexpr int kInternalError = 500;

base::Duration token_life(const kube::TokenVerdict& verdict) { return verdict.user ? kTokenLife : kBadTokenLife; }
base::Duration access_life(const bool& allowed) { return allowed ? kAllowedLife : kDeniedLife; }

std::string hash_of(std::string_view text) {
  const auto hash = net::sha256(text);
  return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}

/// Each part with its length before it, so that no two questions have one text.
std::string key_of(const kube::AccessQuestion& question) {
  std::string text;
  const auto add = [&text](const std::string& part) { text.append(std::to_string(part.size())).append(":" + part); };
  add(question.user.name);
  add(question.user.uid);
  add(question.verb);
  add(question.node);
  add(question.subresource);
  for (const std::string& group : question.user.groups) add(group);
  for (const auto& [key, values] : question.user.extra) {
    text += '/';
    add(key);
    for (const std::string& value : values) add(value);
  }
  return hash_of(text);
}

}  // namespace

Authn::Authn(kube::KubeApi& api, async::Timers& timers, base::Metrics& metrics, bool anonymous)
    : client_(api),
      metrics_(metrics),
      anonymous_(anonymous),
      reviews_(timers, kReviewsAtOnce),
      tokens_(timers, kAnswers, token_life),
      access_(timers, kAnswers, access_life) {}

base::Counter& Authn::counter(const std::string& review, const std::string& outcome) {
  return metrics_.counter("spillway_kubelet_reviews_total",
                          "What the API server was asked about callers of the kubelet API.",
                          {{"review", review}, {"outcome", outcome}});
}

async::Task<kube::TokenVerdict> Authn::ask_token(base::Secret token, base::Deadline deadline) {
  const async::Semaphore::Permit permit = co_await reviews_.acquire(deadline);
  if (!permit) co_return base::fail(base::ErrorKind::kDeadline, "too many tokens are being reviewed");
  auto verdict = co_await client_.review_token(std::move(token), deadline);
  counter("token", !verdict ? "error" : verdict->user ? "yes" : "no").add();
  co_return verdict;
}

async::Task<bool> Authn::ask_access(kube::AccessQuestion question, base::Deadline deadline) {
  auto allowed = co_await client_.review_access(std::move(question), deadline);
  counter("access", !allowed ? "error" : *allowed ? "yes" : "no").add();
  co_return allowed;
}

async::Task<kube::TokenVerdict> Authn::identify(Credentials credentials, base::Deadline deadline) {
  kube::TokenVerdict out;
  if (credentials.certificate) {
    out.user = std::move(credentials.certificate);
  } else if (credentials.bearer) {
    const base::Secret& token = *credentials.bearer;
    auto verdict = co_await tokens_.get(hash_of(token.reveal()), [&] { return ask_token(token, deadline); }, deadline);
    co_return verdict;
  } else if (anonymous_ && !credentials.certificate_refused) {
    out.user = anonymous_user();
  }
  co_return out;
}

async::Task<bool> Authn::may(kube::AccessQuestion question, base::Deadline deadline) {
  auto allowed = co_await access_.get(key_of(question), [&] { return ask_access(question, deadline); }, deadline);
  co_return allowed;
}

boost::asio::awaitable<Admission> Authn::admit(Credentials credentials, AccessAttributes wanted,
                                               base::Deadline deadline) {
  const auto who = co_await identify(std::move(credentials), deadline);
  if (!who) {
    log::warn("a caller of the kubelet API cannot be identified: the API server cannot be asked about its token",
              {{"node", wanted.node}, {"error", who.error()}});
    co_return Admission(kInternalError, "Authentication error: the API server cannot be asked about the token\n");
  }
  if (!who->user) co_return Admission(kUnauthorized, "Unauthorized");
  kube::AccessQuestion question;
  question.user = *who->user;
  question.verb = wanted.verb;
  question.node = wanted.node;
  for (const std::string& subresource : wanted.subresources) {
    question.subresource = subresource;
    const auto allowed = co_await may(question, deadline);
    if (!allowed) {
      log::warn("a caller of the kubelet API cannot be authorized: the API server cannot be asked",
                {{"node", wanted.node}, {"user", question.user.name}, {"error", allowed.error()}});
      co_return Admission(kInternalError,
                          authorization_error_text(question.user, wanted, subresource, allowed.error().message));
    }
    if (!*allowed) continue;
    Admission in;
    in.user = question.user.name;
    co_return in;
  }
  co_return Admission(kForbidden, forbidden_text(question.user, wanted));
}

}  // namespace spillway::api
