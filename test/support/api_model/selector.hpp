// Which objects a list or watch asks for: fieldSelector and labelSelector.
//
// A value. Knows the fields that the real server can select by and refuses all others as it does. Of labels only
// equality; set expressions are refused rather than misread.
#pragma once

#include <string>
#include <vector>

#include "test/support/api_model/api_error.hpp"
#include "test/support/api_model/object.hpp"

namespace spillway::test::api_model {

class Selector {
 public:
  static Outcome<Selector> parse(const Target& target);

  /// Also whether it lies in the namespace, or has the name, that the path asks for.
  bool matches(const Object& object) const;
  /// Neither fields nor labels are asked for.
  bool empty() const { return terms_.empty(); }

 private:
  struct Term {
    Slot slot = Slot::kMetadata;
    std::vector<std::string> path;  // below the slot's member, or for kRest of the object
    std::string value;
    bool equal = true;
  };
  static Outcome<std::vector<std::pair<std::string, Term>>> split(std::string_view text);

  std::string ns_;
  std::vector<Term> terms_;
};

}  // namespace spillway::test::api_model
