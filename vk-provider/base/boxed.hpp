// A value on the heap that is mostly absent: eight bytes where a std::optional would take all of it.
//
// A value: copies copy what is inside. For records of which there are ten thousand.
#pragma once

#include <memory>
#include <utility>

namespace spillway::base {

template <class T>
class Boxed {
 public:
  Boxed() = default;
  Boxed(T value) : value_(std::make_unique<T>(std::move(value))) {}  // NOLINT(google-explicit-constructor): as optional
  Boxed(const Boxed& other) : value_(other.value_ ? std::make_unique<T>(*other.value_) : nullptr) {}
  Boxed(Boxed&&) noexcept = default;
  Boxed& operator=(const Boxed& other) {
    if (this != &other) value_ = other.value_ ? std::make_unique<T>(*other.value_) : nullptr;
    return *this;
  }
  Boxed& operator=(Boxed&&) noexcept = default;
  ~Boxed() = default;

  explicit operator bool() const { return value_ != nullptr; }
  bool has_value() const { return value_ != nullptr; }
  void reset() { value_.reset(); }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return value_.get(); }
  const T* operator->() const { return value_.get(); }

  bool operator==(const Boxed& other) const {
    return value_ && other.value_ ? *value_ == *other.value_ : !value_ && !other.value_;
  }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace spillway::base
