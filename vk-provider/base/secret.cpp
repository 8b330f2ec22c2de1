#include "vk-provider/base/secret.hpp"

#include <cstring>

namespace spillway::base {

Secret::~Secret() { explicit_bzero(value_.data(), value_.size()); }

}  // namespace spillway::base
