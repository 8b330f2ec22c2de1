// Reads the fields of one mapping of a configuration and collects what is wrong with them.
//
// Made on the stack by config.cpp. Every key is asked for once; finish() reports those that nobody asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/money.hpp"
#include "vk-provider/provider/registry.hpp"

namespace spillway::providers::docker {

class Fields {
 public:
  Fields(const nlohmann::json& node, std::string path, std::vector<provider::ConfigFault>& faults);

  /// Null if the key is absent or null; a fault if it is absent and required.
  const nlohmann::json* find(std::string_view key, bool required = false);

  std::optional<std::string> text(std::string_view key, bool required = false);
  std::optional<int> count(std::string_view key, int least, int most);
  /// Dollars per hour.
  std::optional<base::Money> price(std::string_view key, bool required);
  /// A Kubernetes quantity: bytes, or thousandths of a CPU.
  std::optional<std::int64_t> bytes(std::string_view key);
  std::optional<std::int64_t> cpu_milli(std::string_view key);
  /// `90s`, `10m`, `1h30m`.
  std::optional<base::Duration> duration(std::string_view key);
  /// The index of the value in `words`.
  std::optional<size_t> choice(std::string_view key, const std::vector<std::string_view>& words);

  void fault(std::string_view key, std::string message);
  std::string path_of(std::string_view key) const;
  /// Reports unknown keys.
  void finish();

 private:
  std::optional<std::string> scalar(std::string_view key, bool required, std::string_view wanted);

  const nlohmann::json& node_;
  std::string path_;
  std::vector<provider::ConfigFault>& faults_;
  std::vector<std::string> known_;
};

/// A value as it is quoted in a fault: short, one line.
std::string shown(const nlohmann::json& value);

}  // namespace spillway::providers::docker
