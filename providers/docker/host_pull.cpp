// The image of a container: looked for, pulled with the pod's credentials, and what is told of a pull that failed.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include "providers/docker/host.hpp"
#include "providers/docker/pull_auth.hpp"

namespace spillway::providers::docker {
namespace {

namespace asio = boost::asio;
using base::ErrorKind;
using Kind = PullResult::Kind;

constexpr base::Duration kCallTime = std::chrono::seconds(60);

StartFailure image_failure(std::string reason, std::string message) {
  StartFailure out;
  out.reason = std::move(reason);
  out.message = std::move(message);
  out.image_error = true;
  return out;
}

/// Whether other credentials could have led to another answer.
bool depends_on_account(Kind kind) {
  return kind == Kind::kDenied || kind == Kind::kMissing || kind == Kind::kRateLimited || kind == Kind::kOther;
}

/// What it means and what can be done about it, before the engine's own words.
std::string explain(const PullResult& result, const std::string& registry, bool with_account) {
  const std::string secret = "a Secret for " + registry + " in imagePullSecrets";
  switch (result.kind) {
    case Kind::kMissing:
      // Some registries say this to everybody who may not see it.
      if (result.text.contains("denied") && !with_account) {
        return registry + " has no such image, or hides it; check its name, or add " + secret + ": ";
      }
      if (result.text.contains("denied")) {
        return registry + " has no such image, or hides it from the account in imagePullSecrets; check both: ";
      }
      return registry + " has no such image; check its name and tag: ";
    case Kind::kDenied:
      if (with_account) return registry + " refuses the credentials in imagePullSecrets; check that Secret: ";
      return registry + " wants credentials; add " + secret + ": ";
    case Kind::kRateLimited:
      return registry + " limits the rate of pulls; it is tried again later" +
             (with_account ? "" : ", and " + secret + " may raise the limit") + ": ";
    case Kind::kNoPlatform: return "it is not built for the platform of this host; build it for linux/amd64: ";
    case Kind::kUnreachable: return "the registry cannot be reached, another time may do: ";
    default: return "";
  }
}

}  // namespace

asio::awaitable<Host::Step> Host::ensure_image(WorkPtr work, PlanPtr plan, size_t index) {
  const model::ResolvedContainer& container = plan->containers[index];
  const auto failed = [&work, &container](std::string reason, std::string message) {
    work->progress.failures[container.name] = image_failure(std::move(reason), std::move(message));
    return Step::kFailed;
  };
  const auto reference = parse_image(container.image);
  if (!reference) {
    co_return failed("InvalidImageName",
                     "Failed to apply default image tag \"" + container.image + "\": " + reference.error().message);
  }
  if (container.pull_policy != model::PullPolicy::kAlways) {
    const auto present = co_await client_.has_image(container.image, in(kCallTime));
    if (!present && present.error().kind == ErrorKind::kInvalid) {  // the engine's grammar is stricter than ours
      co_return failed("InvalidImageName", present.error().message);
    }
    if (!present) co_return Step::kAgain;
    if (*present) co_return Step::kDone;
  }
  if (container.pull_policy == model::PullPolicy::kNever) {
    co_return failed("ErrImageNeverPull",
                     "Container image \"" + container.image + "\" is not present with pull policy of Never");
  }
  work->progress.activity = "pulling image " + container.image;
  const PullResult result = co_await pull(work, plan, *reference);
  work->progress.activity = "starting";
  if (result.kind == Kind::kPulled) co_return Step::kDone;
  if (result.kind == Kind::kEngineLost) co_return Step::kAgain;
  co_return failed(result.kind == Kind::kMalformed ? "InvalidImageName" : "ErrImagePull",
                   "failed to pull image \"" + container.image + "\": " + result.text);
}

/// With each of the credentials that are for this image, until one does; without any if there are none.
asio::awaitable<PullResult> Host::pull(WorkPtr work, PlanPtr plan, ImageReference image) {
  const std::string registry = registry_of(image.repository);
  const std::vector<model::PullAuth> accounts = matching_auth(plan->pull_auth, image.repository);
  PullResult result;
  if (accounts.empty()) {
    result = co_await pull_once(work, image, base::Secret());
  }
  for (const model::PullAuth& account : accounts) {
    result = co_await pull_once(work, image, encode_registry_auth(account, registry));
    result.text = without_secret(std::move(result.text), account.password);
    if (!depends_on_account(result.kind) || work->progress.ending) break;
  }
  result.text = explain(result, registry, !accounts.empty()) + result.text;
  co_return result;
}

/// A pull ends at once when its instance is terminated; the making of a container does not, because a create that was
/// cut off may still happen after its name was looked for.
asio::awaitable<PullResult> Host::pull_once(WorkPtr work, ImageReference image, base::Secret account) {
  struct Outcome {
    base::Result<PullResult> result = base::fail(ErrorKind::kCancelled, "the pull was cancelled");
  };
  const auto outcome = std::make_shared<Outcome>();
  try {
    outcome->result = co_await asio::co_spawn(
        context_.executor, client_.pull(std::move(image), std::move(account), context_.pull_progress_timeout),
        asio::bind_cancellation_slot(work->cancel_pull.slot(), asio::use_awaitable));
  } catch (const boost::system::system_error& error) {
    if (error.code() != asio::error::operation_aborted) throw;
  }
  if (outcome->result) co_return std::move(*outcome->result);
  PullResult lost;
  lost.kind = Kind::kEngineLost;
  co_return lost;
}

}  // namespace spillway::providers::docker
