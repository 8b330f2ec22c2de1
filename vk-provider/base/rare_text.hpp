// A text that is mostly empty: eight bytes until there is something to say.
//
// A value that reads as a std::string. For records of which there are ten thousand.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::base {

class RareText {
 public:
  RareText() = default;
  RareText(std::string text) { set(std::move(text)); }              // NOLINT(google-explicit-constructor)
  RareText(std::string_view text) : RareText(std::string(text)) {}  // NOLINT(google-explicit-constructor)
  RareText(const char* text) : RareText(std::string(text)) {}       // NOLINT(google-explicit-constructor)
  RareText(const RareText& other) : text_(other.text_ ? std::make_unique<std::string>(*other.text_) : nullptr) {}
  RareText(RareText&&) noexcept = default;
  RareText& operator=(const RareText& other) {
    if (this != &other) text_ = other.text_ ? std::make_unique<std::string>(*other.text_) : nullptr;
    return *this;
  }
  RareText& operator=(RareText&&) noexcept = default;
  ~RareText() = default;

  const std::string& str() const { return text_ ? *text_ : nothing(); }
  operator const std::string&() const { return str(); }  // NOLINT(google-explicit-constructor)
  operator std::string_view() const { return str(); }    // NOLINT(google-explicit-constructor)
  bool empty() const { return !text_; }
  size_t size() const { return str().size(); }
  size_t find(std::string_view text) const { return str().find(text); }
  bool starts_with(std::string_view text) const { return str().starts_with(text); }
  void clear() { text_.reset(); }

  friend bool operator==(const RareText& a, const RareText& b) { return a.str() == b.str(); }
  friend bool operator==(const RareText& a, const char* b) { return a.str() == b; }
  friend bool operator==(const RareText& a, const std::string& b) { return a.str() == b; }
  friend std::string operator+(const std::string& a, const RareText& b) { return a + b.str(); }
  friend std::string operator+(const RareText& a, const std::string& b) { return a.str() + b; }
  friend std::ostream& operator<<(std::ostream& out, const RareText& text) { return out << text.str(); }

 private:
  static const std::string& nothing() {
    static const std::string empty;
    return empty;
  }
  void set(std::string text) {
    if (!text.empty()) text_ = std::make_unique<std::string>(std::move(text));
  }

  std::unique_ptr<std::string> text_;
};

}  // namespace spillway::base
