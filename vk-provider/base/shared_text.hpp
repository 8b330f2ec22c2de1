// A text that never changes and that its copies share: eight bytes each, none more while it is empty.
//
// A value that reads as a std::string. For records of which there are ten thousand, where the same UID, tag or image
// stands in many places. Copies may live in several threads, one object may not.
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::base {

class SharedText {
 public:
  SharedText() = default;
  SharedText(std::string text)  // NOLINT(google-explicit-constructor): it is read as a string, so it is made as one
      : node_(text.empty() ? nullptr : new Node(std::move(text))) {}
  SharedText(std::string_view text) : SharedText(std::string(text)) {}  // NOLINT(google-explicit-constructor)
  SharedText(const char* text) : SharedText(std::string(text)) {}       // NOLINT(google-explicit-constructor)
  SharedText(const SharedText& other) : node_(other.node_) {
    if (node_ != nullptr) node_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  SharedText(SharedText&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  SharedText& operator=(SharedText other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~SharedText() {
    if (node_ != nullptr && node_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete node_;
  }

  const std::string& str() const { return node_ != nullptr ? node_->text : nothing(); }
  operator const std::string&() const { return str(); }  // NOLINT(google-explicit-constructor)
  operator std::string_view() const { return str(); }    // NOLINT(google-explicit-constructor)
  bool empty() const { return node_ == nullptr; }
  size_t size() const { return str().size(); }
  /// True if no other copy lives.
  bool is_sole_owner() const { return node_ != nullptr && node_->owners.load(std::memory_order_acquire) == 1; }
  size_t find(std::string_view text) const { return str().find(text); }
  bool starts_with(std::string_view text) const { return str().starts_with(text); }
  void clear() { *this = SharedText(); }

  friend bool operator==(const SharedText& a, const SharedText& b) { return a.node_ == b.node_ || a.str() == b.str(); }
  friend bool operator==(const SharedText& a, const char* b) { return a.str() == b; }
  friend bool operator==(const SharedText& a, const std::string& b) { return a.str() == b; }
  friend bool operator==(const SharedText& a, std::string_view b) { return a.str() == b; }
  friend auto operator<=>(const SharedText& a, const SharedText& b) { return a.str() <=> b.str(); }
  friend std::string operator+(const std::string& a, const SharedText& b) { return a + b.str(); }
  friend std::string operator+(const SharedText& a, const std::string& b) { return a.str() + b; }
  friend std::ostream& operator<<(std::ostream& out, const SharedText& text) { return out << text.str(); }

 private:
  struct Node {
    explicit Node(std::string t) : text(std::move(t)) { text.shrink_to_fit(); }
    std::atomic<std::uint32_t> owners{1};
    std::string text;
  };
  static const std::string& nothing() {
    static const std::string empty;
    return empty;
  }

  Node* node_ = nullptr;
};

}  // namespace spillway::base

template <>
struct std::hash<spillway::base::SharedText> {
  // noexcept: the nodes of a map then do not keep the hash beside the text.
  size_t operator()(const spillway::base::SharedText& text) const noexcept {
    return std::hash<std::string>{}(text.str());
  }
};
