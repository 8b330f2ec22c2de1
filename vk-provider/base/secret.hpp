// A string that cannot be printed by accident.
//
// A value, any thread; the bytes are overwritten when it dies. reveal() is for the one line that sends it to the party
// it belongs to.
#pragma once

#include <string>
#include <utility>

namespace spillway::base {

class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string value) : value_(std::move(value)) {}
  Secret(const Secret&) = default;
  Secret(Secret&&) noexcept = default;
  Secret& operator=(const Secret&) = default;
  Secret& operator=(Secret&&) noexcept = default;
  ~Secret();

  const std::string& reveal() const { return value_; }
  bool empty() const { return value_.empty(); }
  bool operator==(const Secret&) const = default;

 private:
  std::string value_;
};

}  // namespace spillway::base
