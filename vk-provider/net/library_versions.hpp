// Versions of the libraries that are linked into the program, for `spillway version`.
#pragma once

#include <string>

namespace spillway::net {

/// `OpenSSL 3.0.15 3 Sep 2024`, of the library that runs.
std::string openssl_version();

}  // namespace spillway::net
