// What happened in a run, as lines: hashed always, printed if somebody looks.
//
// Owned by the World. Equal runs have equal hashes, on any machine: only names, numbers and virtual times go in.
#pragma once

#include <concepts>
#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>

#include "test/simulation/agenda.hpp"

namespace spillway::simulation {

class Trace {
 public:
  Trace(const Agenda& agenda, bool print) : agenda_(agenda), print_(print) {}

  /// A word for what happened, and what it happened to.
  template <class... Parts>
  void note(std::string_view what, const Parts&... parts) {
    const auto at = (agenda_.now() - base::TimePoint(std::chrono::hours(1))).count();
    add(std::to_string(at));
    add(what);
    (add(text(parts)), ...);
    ++lines_;
    if (!print_) return;
    std::string line = "+" + std::to_string(at / 1'000'000) + "ms " + std::string(what);
    ((line += " " + std::string(text(parts))), ...);
    std::cerr << line << '\n';
  }

  std::uint64_t hash() const { return hash_; }
  std::uint64_t lines() const { return lines_; }

 private:
  static std::string_view text(std::string_view part) { return part; }
  template <std::integral T>
  static std::string text(T number) {
    return std::to_string(number);
  }

  void add(std::string_view part) {
    for (const char c : part) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
    hash_ = (hash_ ^ 0xFFU) * 0x100000001B3U;
  }

  const Agenda& agenda_;
  bool print_;
  std::uint64_t hash_ = 0xCBF29CE484222325U;
  std::uint64_t lines_ = 0;
};

}  // namespace spillway::simulation
