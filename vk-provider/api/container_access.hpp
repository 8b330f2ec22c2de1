// Which instance a log, an exec or a forwarded port of a pod leads to, or what to say instead. Pure.
//
// The words for a container without a log are a kubelet's: people and tools look for them.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "vk-provider/base/error.hpp"
#include "vk-provider/core/pod_view.hpp"
#include "vk-provider/model/instance.hpp"

namespace spillway::api {

/// An answer that says no, as text.
struct Refusal {
  Refusal() = default;
  Refusal(int s, std::string t) : status(s), text(std::move(t)) {}
  int status = 0;
  std::string text;
};
template <class T>
using Answer = std::expected<T, Refusal>;

inline std::unexpected<Refusal> refuse(int status, std::string text) {
  return std::unexpected(Refusal(status, std::move(text)));
}

/// A pod as a path names it. 404 without it, or if it has another uid.
struct PodName {
  PodName() = default;
  std::string ns;
  std::string pod;
  std::string uid;  // empty: any
};
Answer<const model::PodRecord*> find_pod(const core::PodView& pods, std::string_view node, const PodName& name);

/// The container's log: that of a run that goes on or has ended, or of the one before. 404: no such container; 400: it
/// has none yet, or none any more.
Answer<model::InstanceRef> find_log(const model::PodRecord& pod, const std::string& container, bool previous,
                                    base::Now now);
/// 404: no such container; 400: it does not run.
Answer<model::InstanceRef> find_running(const model::PodRecord& pod, const std::string& container, base::Now now);
/// 400: nothing of the pod runs.
Answer<model::InstanceRef> find_ports(const model::PodRecord& pod);

/// What a provider's error means to the caller.
Refusal refusal_of(const base::Error& error);

}  // namespace spillway::api
