// What the watches of Services and of our EndpointSlices bring; see endpoint_controller.hpp.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "vk-provider/control/endpoint_controller.hpp"

namespace spillway::control {

class EndpointController::ServiceSink final : public kube::ReflectorSink {
 public:
  explicit ServiceSink(EndpointController& owner) : owner_(owner) {}
  void on_list_begin() override { seen_.clear(); }
  void on_list_end() override;
  void on_object(std::string_view json) override;
  void on_deleted(std::string_view json) override;

  bool listed() const { return listed_; }

 private:
  void remove(const Key& key);
  static bool concerns_us(const Namespace& ns);

  EndpointController& owner_;
  std::set<Key> seen_;
  bool listed_ = false;
};

class EndpointController::SliceSink final : public kube::ReflectorSink {
 public:
  explicit SliceSink(EndpointController& owner) : owner_(owner) {}
  void on_list_begin() override { seen_.clear(); }
  void on_list_end() override;
  void on_object(std::string_view json) override;
  void on_deleted(std::string_view json) override;

  bool listed() const { return listed_; }

 private:
  EndpointController& owner_;
  std::set<Key> seen_;
  bool listed_ = false;
};

/// Before the pod controller's: its pods keep no labels, and nobody else needs them.
class EndpointController::LabelSink final : public kube::ReflectorSink {
 public:
  LabelSink(EndpointController& owner, kube::ReflectorSink& next) : owner_(owner), next_(next) {}
  void on_list_begin() override { next_.on_list_begin(); }
  void on_list_end() override { next_.on_list_end(); }
  void on_object(std::string_view json) override;
  void on_deleted(std::string_view json) override;

 private:
  EndpointController& owner_;
  kube::ReflectorSink& next_;
};

}  // namespace spillway::control
