// What becomes of each field of a PodSpec: a table, and the walk that finds what a pod sets beyond it.
//
// Pure. A field is honoured (kube/pod_spec_codec translates it), accepted (the scheduler's business, or a default that
// the API server fills in), or needs something. What is in no row is refused, too: a newer API server's field is
// never dropped without a word. test/unit/kube/pod_fields_test.cpp holds the table against the API's own types.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/kube/pod_field_rule.hpp"
#include "vk-provider/model/pod_spec.hpp"

namespace spillway::kube {

/// All rows.
std::span<const FieldRule> pod_field_rules();

/// The row that decides about a path (its own or the nearest above it); null for a path that no row knows.
const FieldRule* find_pod_field_rule(std::string_view path);
/// The row with this path.
const FieldRule* exact_pod_field_rule(std::string_view path);

struct PodFields {
  /// Every field that is set and neither honoured nor accepted, in the order of the text.
  std::vector<model::FieldUse> uses;
  /// The volume with the service account's token that the API server adds, if it is to be left out: it and its mounts
  /// are then in no use.
  std::string withheld_volume;
  bool broken = false;  // the text is not well-formed
};

/// `send_token`: the pod asks for its service account's token, so that its volume is one like any other.
PodFields walk_pod_fields(std::string_view spec_json, bool send_token);

}  // namespace spillway::kube
