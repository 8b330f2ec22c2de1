// Pod JSON <-> model.
//
// Pure functions, reactor thread. Tolerant of absent, null and mistyped optional fields; an object without
// metadata.uid, name or namespace is kInvalid.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "vk-provider/base/error.hpp"
#include "vk-provider/model/pod_spec.hpp"
#include "vk-provider/model/pod_status.hpp"
#include "vk-provider/model/spec_pool.hpp"

namespace spillway::kube {

struct DecodedPod {
  DecodedPod() = default;
  model::PodKey key;
  bool is_static = false;  // of a node's own files (or the mirror of one): nobody may act on it
  model::PodSpecPtr spec;  // null if `known` said that the UID's spec is known already
  model::ObservedPod observed;
};

/// Decodes one Pod object. `known(uid)` true leaves `spec` out (it cannot change, and most events are status changes).
/// With a pool, what many pods have in common is shared among their specs.
base::Result<DecodedPod> decode_pod(std::string_view json, const std::function<bool(const base::PodUid&)>& known,
                                    model::SpecPool* pool = nullptr);

/// Identity and version of a Pod object: cheap, to see whether it has to be decoded at all. Views into the text.
struct PodPeek {
  std::string_view uid;
  std::string_view resource_version;
};
PodPeek peek_pod(std::string_view json);

/// What is to change of a pod's status and of our annotations in one request.
struct PodStatusPatch {
  PodStatusPatch() = default;
  model::PodKey key;
  std::string resource_version;             // as observed; like the UID a precondition: 409 if the pod has another
  model::PodStatus status;                  // wanted
  model::PodStatus previous;                // as observed: to remove what the merge would keep (an old podIP)
  std::optional<model::StateRecord> state;  // written if set
  std::optional<std::string> addresses;     // state.spillway.dev/addresses; empty text removes it
  base::SharedText why;                     // state.spillway.dev/why; empty leaves it as it stands
  std::optional<int> deletion_cost;         // writes controller.kubernetes.io/pod-deletion-cost
  bool note_withheld_token = false;         // writes state.spillway.dev/withheld
};

/// The strategic-merge-patch body for pods/status. Touches no condition, label or annotation that is not ours.
std::string encode_status_patch(const PodStatusPatch& patch);

/// The text of state.spillway.dev/placement.
std::string encode_state(const model::StateRecord& record);
model::StateAnnotation decode_state(std::string_view text, const base::PodUid& uid);

}  // namespace spillway::kube
