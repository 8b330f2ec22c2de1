// Finds one text for all that are equal, so that a thousand pods of one template hold their image's name once.
//
// A value, one thread. Keeps a text as long as somebody else has it: what only the pool has goes when it has doubled.
#pragma once

#include <algorithm>
#include <cstddef>
#include <unordered_set>
#include <utility>

#include "vk-provider/base/shared_text.hpp"

namespace spillway::base {

class TextPool {
 public:
  /// Makes `text` a copy of an equal text that is known, or makes it known.
  void share(SharedText& text) {
    if (text.empty()) return;
    const auto [known, fresh] = texts_.insert(text);
    if (!fresh) {
      text = *known;
    } else if (texts_.size() >= clean_at_) {
      std::erase_if(texts_, [](const SharedText& t) { return t.is_sole_owner(); });
      clean_at_ = std::max(kLeast, texts_.size() * 2);
    }
  }
  size_t size() const { return texts_.size(); }

 private:
  static constexpr size_t kLeast = 64;

  std::unordered_set<SharedText> texts_;
  size_t clean_at_ = kLeast;
};

}  // namespace spillway::base
