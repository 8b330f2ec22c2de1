// Whether any provider can honour a pod, and the one message that refuses it before a cent is spent.
//
// Pure. A feature that one provider lacks sends the pod to one that has it; only when no configured provider can honour
// the pod is it refused, and then all that is wrong is told at once: every field by its path, per provider the reason,
// and what to do.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/core/requirements.hpp"
#include "vk-provider/model/capability.hpp"
#include "vk-provider/model/pod_record.hpp"

namespace spillway::core {

struct ProviderAbility {
  ProviderAbility() = default;
  std::string name;
  model::CapabilitySet capabilities;
};

/// A capability that a provider lacks, and the fields of the pod that need it.
struct Lack {
  model::Capability capability{};
  std::vector<std::string> paths;
  std::string why;
};

struct Verdict {
  struct OfProvider {
    std::string name;
    std::vector<Lack> lacks;  // empty: it can honour what it is asked for
  };
  std::vector<Fault> faults;  // no provider can mend them; bad names of images among them
  bool only_images = false;   // all faults are names of images, and a provider could honour the rest
  std::vector<OfProvider> providers;

  bool refused() const;
};

Verdict judge(const model::PodSpec& pod, const Requirements& requirements,
              const std::vector<ProviderAbility>& providers);

struct Refusal {
  model::WaitReason why{};  // kRefused or kInvalidImage
  std::string message;      // at most kMaxRefusal bytes, with the number of what is left out
};
inline constexpr size_t kMaxRefusal = 8192;

/// Empty if a provider can honour the pod.
std::optional<Refusal> refusal(const model::PodSpec& pod, const Requirements& requirements,
                               const std::vector<ProviderAbility>& providers);

/// The message as an event may carry it: the API takes 1024 bytes. Says where the rest stands.
std::string event_text_of(std::string message);

}  // namespace spillway::core
