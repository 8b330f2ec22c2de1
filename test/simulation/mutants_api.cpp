// Planted bugs between a daemon and its API server.
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "test/simulation/mutants.hpp"
#include "vk-provider/model/labels.hpp"

namespace spillway::simulation {
namespace {

using nlohmann::json;
using ApiPtr = std::unique_ptr<kube::KubeApi>;

bool is_status_patch(const kube::KubeRequest& request) {
  return request.method == net::Method::kPatch && request.target.find("/pods/") != std::string::npos;
}

bool is_pod_delete(const kube::KubeRequest& request) {
  return request.method == net::Method::kDelete && request.target.find("/pods/") != std::string::npos;
}

class Passing : public kube::KubeApi {
 public:
  explicit Passing(ApiPtr inner) : inner_(std::move(inner)) {}
  async::Task<async::ByteStreamPtr> watch(kube::KubeRequest request, base::Deadline deadline) override {
    return inner_->watch(std::move(request), deadline);
  }

 protected:
  kube::KubeApi& inner() { return *inner_; }

 private:
  ApiPtr inner_;
};

/// Sends another body than the daemon wanted to.
class Edited final : public Passing {
 public:
  using Edit = void (*)(const kube::KubeRequest&, json& body);
  Edited(ApiPtr inner, Edit edit) : Passing(std::move(inner)), edit_(edit) {}

  async::Task<kube::KubeResponse> send(kube::KubeRequest request, base::Deadline deadline) override {
    if (is_status_patch(request) || is_pod_delete(request)) {
      json body = json::parse(request.body);
      edit_(request, body);
      request.body = body.dump();
    }
    return inner().send(std::move(request), deadline);
  }

 private:
  Edit edit_;
};

template <Edited::Edit Function>
ApiPtr edited(ApiPtr inner) {
  return std::make_unique<Edited>(std::move(inner), Function);
}

void no_delete_precondition(const kube::KubeRequest& request, json& body) {
  if (is_pod_delete(request)) body.erase("preconditions");
}

void no_patch_precondition(const kube::KubeRequest& request, json& body) {
  if (!is_status_patch(request)) return;
  body["metadata"].erase("uid");
  body["metadata"].erase("resourceVersion");
}

void no_version(const kube::KubeRequest& request, json& body) {
  if (is_status_patch(request)) body["metadata"].erase("resourceVersion");
}

/// Names what is to be bought, and no instance yet.
bool is_intent(const json& body) {
  const json annotations = body["metadata"].value("annotations", json::object());
  const auto state = annotations.find(std::string(model::kAnnotationState));
  return state != annotations.end() && state->is_string() &&
         !json::parse(state->get<std::string>()).contains("instance");
}

/// The annotation comes with the instance's id, when it is too late.
void no_intent(const kube::KubeRequest& request, json& body) {
  if (!is_status_patch(request) || !is_intent(body)) return;
  body["metadata"]["annotations"].erase(std::string(model::kAnnotationState));
}

/// A status without what keeps an old one from landing; nothing if it is none.
std::optional<kube::KubeRequest> unconditional_status(const kube::KubeRequest& request) {
  if (!is_status_patch(request)) return std::nullopt;
  json body = json::parse(request.body);
  if (is_intent(body)) return std::nullopt;
  no_version(request, body);
  kube::KubeRequest status = request;
  status.body = body.dump();
  return status;
}

/// Every status is written twice.
class Twice final : public Passing {
 public:
  using Passing::Passing;
  async::Task<kube::KubeResponse> send(kube::KubeRequest request, base::Deadline deadline) override {
    auto again = unconditional_status(request);
    auto answer = co_await inner().send(std::move(request), deadline);
    if (!again || !answer) co_return answer;
    co_return co_await inner().send(std::move(*again), deadline);
  }
};

/// An older status of a pod lands after a newer one.
class OldLast final : public Passing {
 public:
  using Passing::Passing;
  async::Task<kube::KubeResponse> send(kube::KubeRequest request, base::Deadline deadline) override {
    const auto status = unconditional_status(request);
    if (!status) co_return co_await inner().send(std::move(request), deadline);
    const auto older = older_.find(status->target);
    kube::KubeRequest late = older == older_.end() ? *status : older->second;
    older_.insert_or_assign(status->target, *status);
    auto answer = co_await inner().send(std::move(request), deadline);
    if (answer) answer = co_await inner().send(std::move(late), deadline);
    co_return answer;
  }

 private:
  std::map<std::string, kube::KubeRequest> older_;  // by target
};

/// The installation's lease looks as if nobody held it.
class FreeLease final : public Passing {
 public:
  using Passing::Passing;
  async::Task<kube::KubeResponse> send(kube::KubeRequest request, base::Deadline deadline) override {
    const bool look =
        request.method == net::Method::kGet && request.target.find("/leases/spillway-") != std::string::npos;
    auto answer = co_await inner().send(std::move(request), deadline);
    if (!look || !answer) co_return answer;
    json lease = json::parse(answer->body);
    lease["spec"]["holderIdentity"] = "";
    answer->body = lease.dump();
    co_return answer;
  }
};

/// The lease of a node is renewed once and never again.
class LazyNodeLease final : public Passing {
 public:
  using Passing::Passing;
  async::Task<kube::KubeResponse> send(kube::KubeRequest request, base::Deadline deadline) override {
    const bool renewal =
        request.method == net::Method::kPut && request.target.find("kube-node-lease") != std::string::npos;
    if (!renewal) co_return co_await inner().send(std::move(request), deadline);
    kube::KubeResponse answer;
    answer.status = 200;
    answer.body = std::move(request.body);
    co_return answer;
  }
};

/// The ledger is begun, and nothing is added to it.
class LazyLedger final : public Passing {
 public:
  using Passing::Passing;
  async::Task<kube::KubeResponse> send(kube::KubeRequest request, base::Deadline deadline) override {
    const bool entry =
        request.method == net::Method::kPut && request.target.find("/spillway-ledger-") != std::string::npos;
    if (!entry) co_return co_await inner().send(std::move(request), deadline);
    kube::KubeResponse answer;
    answer.status = 200;
    answer.body = std::move(request.body);
    co_return answer;
  }
};

/// Nobody is named as the owner of a pod. A word of the same length, so that what follows stays where it is.
void hide_owners(std::string& text) {
  constexpr std::string_view kOwners = "\"ownerReferences\"";
  constexpr std::string_view kHidden = "\"ownerReferencez\"";
  for (size_t at = text.find(kOwners); at != std::string::npos; at = text.find(kOwners, at)) {
    text.replace(at, kOwners.size(), kHidden);
  }
}

class OwnerlessStream final : public async::ByteStream {
 public:
  explicit OwnerlessStream(async::ByteStreamPtr inner) : inner_(std::move(inner)) {}
  async::Task<std::string> read(base::Deadline deadline) override {
    auto bytes = co_await inner_->read(deadline);
    if (bytes) hide_owners(*bytes);
    co_return bytes;
  }
  async::Task<void> write(std::string bytes, base::Deadline deadline) override {
    return inner_->write(std::move(bytes), deadline);
  }
  async::Task<void> close_write(base::Deadline deadline) override { return inner_->close_write(deadline); }

 private:
  async::ByteStreamPtr inner_;
};

/// Every pod is its own owner, so that the brake forgets it when its controller has replaced it.
class Ownerless final : public Passing {
 public:
  using Passing::Passing;
  async::Task<kube::KubeResponse> send(kube::KubeRequest request, base::Deadline deadline) override {
    const bool pods = request.target.find("/pods") != std::string::npos;
    auto answer = co_await inner().send(std::move(request), deadline);
    if (pods && answer) hide_owners(answer->body);
    co_return answer;
  }
  async::Task<async::ByteStreamPtr> watch(kube::KubeRequest request, base::Deadline deadline) override {
    auto stream = co_await inner().watch(std::move(request), deadline);
    if (!stream) co_return stream;
    co_return std::make_unique<OwnerlessStream>(std::move(*stream));
  }
};

}  // namespace

std::vector<Mutant> api_mutants() {
  return {
      Mutant("delete-without-uid", "removes whatever pod has the name by now", edited<no_delete_precondition>),
      Mutant("patch-without-uid", "writes its status on whatever pod has the name by now",
             edited<no_patch_precondition>),
      Mutant("intent-without-version", "writes an intent on a pod that was deleted meanwhile", edited<no_version>),
      Mutant("no-intent", "buys first and writes it down afterwards", edited<no_intent>),
      Mutant("status-twice", "writes a status that stands already", wrapped<Twice>),
      Mutant("old-status-last", "lets an older status overtake a newer one", wrapped<OldLast>),
      Mutant("lease-is-free", "takes the lease although another daemon holds it", wrapped<FreeLease>),
      Mutant("lazy-node-lease", "does not renew the lease of its node", wrapped<LazyNodeLease>),
      Mutant("lazy-ledger", "does not write down what its instances cost", wrapped<LazyLedger>),
      Mutant("pod-is-owner", "slows down a pod that failed, and not the controller that makes the next",
             wrapped<Ownerless>),
  };
}

}  // namespace spillway::simulation
