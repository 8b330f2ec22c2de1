// A list that its copies share until one of them is edited.
//
// A value that reads as a std::vector. Copies may live in several threads, one object may not.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace spillway::base {

template <class T>
class SharedList {
 public:
  SharedList() = default;

  const std::vector<T>& items() const { return items_ ? *items_ : nothing(); }
  auto begin() const { return items().begin(); }
  auto end() const { return items().end(); }
  size_t size() const { return items().size(); }
  bool empty() const { return items().empty(); }
  const T& operator[](size_t i) const { return items()[i]; }
  const T& at(size_t i) const { return items().at(i); }

  /// The list of this copy alone.
  std::vector<T>& edit() {
    if (items_.use_count() != 1) items_ = std::make_shared<std::vector<T>>(items());
    return *items_;
  }
  /// True if no other copy shares it.
  bool is_sole_owner() const { return items_.use_count() <= 1; }

  bool operator==(const SharedList& other) const { return items_ == other.items_ || items() == other.items(); }

 private:
  static const std::vector<T>& nothing() {
    static const std::vector<T> empty;
    return empty;
  }

  std::shared_ptr<std::vector<T>> items_;
};

}  // namespace spillway::base
