// What the watches of nodes and pods bring to the gates.
#include <algorithm>

#include "vk-provider/base/log.hpp"
#include "vk-provider/control/gate_parts.hpp"
#include "vk-provider/kube/home_codec.hpp"
#include "vk-provider/kube/pod_codec.hpp"

namespace spillway::control {

void GateController::NodeSink::on_list_begin() {
  ours_seen_.clear();
  for (const auto& gate : owner_.gates_) gate->book.begin_nodes();
}

void GateController::NodeSink::on_list_end() {
  for (const auto& gate : owner_.gates_) {
    gate->book.end_nodes();
    for (const auto& writer : gate->writers) {
      if (!ours_seen_.contains(writer->name())) writer->on_gone();
    }
  }
  owner_.note_change();
}

void GateController::NodeSink::on_object(std::string_view json) {
  const auto node = kube::decode_home_node(json);
  if (!node) return base::log::warn("a node is left out of the gates' account", {{"error", node.error()}});
  bool changed = false;
  for (const auto& gate : owner_.gates_) {
    changed = gate->book.put_node(*node) || changed;
    GateWriter* const writer = gate->writer_of(node->name);
    if (writer == nullptr) continue;
    ours_seen_[node->name] = true;
    changed = true;  // its taint, or a person's order
    if (auto ours = kube::decode_gate_node(json)) writer->on_node(std::move(*ours));
  }
  if (changed) owner_.note_change();
}

void GateController::NodeSink::on_deleted(std::string_view json) {
  const auto node = kube::decode_home_node(json);
  if (!node) return;
  for (const auto& gate : owner_.gates_) {
    if (gate->book.remove_node(node->name)) owner_.note_change();
    if (GateWriter* const writer = gate->writer_of(node->name)) writer->on_gone();
  }
}

void GateController::PodSink::on_list_begin() {
  for (const auto& gate : owner_.gates_) gate->book.begin_pods();
  if (owner_.listener_ != nullptr) owner_.listener_->on_pods_begin();
}

void GateController::PodSink::on_list_end() {
  for (const auto& gate : owner_.gates_) gate->book.end_pods();
  if (owner_.listener_ != nullptr) owner_.listener_->on_pods_end();
  owner_.note_change();
}

void GateController::PodSink::on_object(std::string_view json) {
  const auto pod = kube::decode_home_pod(json);
  if (!pod) return base::log::warn("a pod is left out of the gates' account", {{"error", pod.error()}});
  if (pod->gpus.none()) return;
  const base::TimePoint now = owner_.d_.timers->now();
  bool changed = false;
  for (const auto& gate : owner_.gates_) changed = gate->book.put_pod(*pod, now) || changed;
  if (owner_.listener_ != nullptr) owner_.listener_->on_pod(*pod);
  if (changed) owner_.note_change();
}

void GateController::PodSink::on_deleted(std::string_view json) {
  const std::string uid(kube::peek_pod(json).uid);
  if (owner_.listener_ != nullptr) owner_.listener_->on_pod_deleted(uid);
  bool changed = false;
  for (const auto& gate : owner_.gates_) changed = gate->book.remove_pod(uid) || changed;
  if (changed) owner_.note_change();
}

}  // namespace spillway::control
