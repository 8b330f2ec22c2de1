// What the drain reads of Pods and PodDisruptionBudgets, and what it writes on pods.
//
// Pure; reactor thread. Builds no tree. The note on a detached pod is two annotations of one patch:
//
//   spillway.dev/draining: <the value that the label pod-template-hash had>
//   state.spillway.dev/drain: {"v":1,"uid":"<pod>","since":"<RFC 3339>","owner":"<ReplicaSet>","ownerUid":"<its UID>"}
//
// A note of another version or of another pod (a copied manifest) is none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "vk-provider/base/error.hpp"
#include "vk-provider/model/home.hpp"

namespace spillway::kube {

/// Of a pod whose identity and labels were decoded already.
void decode_drain_facts(std::string_view metadata, std::string_view status, model::HomePod& out);

base::Result<model::DisruptionBudget> decode_budget(std::string_view json);
/// status.disruptionsAllowed of one.
std::int64_t decode_disruptions_allowed(std::string_view json);

/// policy/v1 Eviction of this very pod.
std::string encode_eviction(const model::HomePod& pod);
/// Merge patches, valid only at the version of the pod that they were made from: the label goes and the note comes; and
/// back again.
std::string encode_detach(const model::HomePod& pod, const model::DetachNote& note);
std::string encode_return(const model::HomePod& pod);

}  // namespace spillway::kube
