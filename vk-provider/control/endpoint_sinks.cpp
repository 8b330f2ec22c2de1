// What the watches of Services and of our EndpointSlices bring.
#include "vk-provider/base/log.hpp"
#include "vk-provider/control/endpoint_parts.hpp"
#include "vk-provider/kube/endpoint_codec.hpp"
#include "vk-provider/kube/json_scan.hpp"
#include "vk-provider/kube/pod_codec.hpp"

namespace spillway::control {
namespace {

std::pair<std::string, std::string> key_of(std::string_view json) {
  using kube::json_member;
  using kube::json_string_or_empty;
  return {json_string_or_empty(json_member(json, "metadata", "namespace")),
          json_string_or_empty(json_member(json, "metadata", "name"))};
}

}  // namespace

void EndpointController::ServiceSink::on_list_end() {
  std::vector<Key> gone;
  for (const auto& [name, ns] : owner_.namespaces_) {
    for (const auto& [service, entry] : ns.services) {
      if (!seen_.contains({name, service})) gone.emplace_back(name, service);
    }
  }
  for (const Key& key : gone) remove(key);
  listed_ = true;
  owner_.waiter_->wake();
}

void EndpointController::ServiceSink::on_object(std::string_view json) {
  auto service = kube::decode_endpoint_service(json);
  if (!service) return base::log::warn("a Service is left out", {{"error", service.error()}});
  if (!*service) return remove(key_of(json));
  Key key{(*service)->ns, (*service)->name};
  Namespace& ns = owner_.namespaces_[key.first];
  model::EndpointService& known = ns.services[key.second];
  if (known != **service) {
    known = std::move(**service);
    if (concerns_us(ns)) owner_.note_change(key.first);
  }
  seen_.insert(std::move(key));
}

void EndpointController::ServiceSink::on_deleted(std::string_view json) { remove(key_of(json)); }

void EndpointController::ServiceSink::remove(const Key& key) {
  const auto ns = owner_.namespaces_.find(key.first);
  if (ns == owner_.namespaces_.end() || ns->second.services.erase(key.second) == 0) return;
  if (concerns_us(ns->second)) owner_.note_change(key.first);
}

/// Most Services have none of our pods behind them.
bool EndpointController::ServiceSink::concerns_us(const Namespace& ns) {
  return !ns.pods.empty() || !ns.slices.empty();
}

void EndpointController::SliceSink::on_list_end() {
  std::vector<Key> gone;
  for (const auto& [name, ns] : owner_.namespaces_) {
    for (const auto& [slice, entry] : ns.slices) {
      if (!seen_.contains({name, slice})) gone.emplace_back(name, slice);
    }
  }
  for (const Key& key : gone) owner_.forget(key);
  listed_ = true;
  owner_.waiter_->wake();
}

void EndpointController::SliceSink::on_object(std::string_view json) {
  auto slice = kube::decode_endpoint_slice(json);
  if (!slice) return base::log::warn("an EndpointSlice is left out", {{"error", slice.error()}});
  seen_.emplace(slice->ns, slice->name);
  owner_.absorb(std::move(*slice));
}

void EndpointController::SliceSink::on_deleted(std::string_view json) { owner_.forget(key_of(json)); }

void EndpointController::LabelSink::on_object(std::string_view json) {
  base::PodUid uid(std::string(kube::peek_pod(json).uid));
  std::string labels = kube::decode_label_text(json);
  base::SharedText& known = owner_.labels_[std::move(uid)];
  if (known != labels) known = std::move(labels);
  next_.on_object(json);
}

void EndpointController::LabelSink::on_deleted(std::string_view json) {
  next_.on_deleted(json);
  owner_.labels_.erase(base::PodUid(std::string(kube::peek_pod(json).uid)));
}

}  // namespace spillway::control
