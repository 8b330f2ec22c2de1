// Owners of what OpenSSL hands out: std::unique_ptr<X509, OpensslDeleter<X509_free>>.
#pragma once

namespace spillway::net {

template <auto Free>
struct OpensslDeleter {
  template <class T>
  void operator()(T* p) const {
    Free(p);
  }
};

}  // namespace spillway::net
