#include "test/support/certificates.hpp"

#include <memory>
#include <stdexcept>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "vk-provider/net/openssl_ptr.hpp"

namespace spillway::test {
namespace {

using Bio = std::unique_ptr<BIO, net::OpensslDeleter<BIO_free>>;
using Key = std::unique_ptr<EVP_PKEY, net::OpensslDeleter<EVP_PKEY_free>>;
using X509Ptr = std::unique_ptr<X509, net::OpensslDeleter<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, net::OpensslDeleter<X509_EXTENSION_free>>;

void check(bool ok) {
  if (!ok) throw std::runtime_error("OpenSSL refuses to make a test certificate");
}

std::string text_of(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

Bio bio_of(const std::string& text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

void add_extension(X509* cert, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, cert, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  check(extension != nullptr && X509_add_ext(cert, extension.get(), -1) == 1);
}

/// What a certificate says beside its name.
struct Contents {
  std::string alt_names;
  std::vector<std::string> organizations;
  std::string usage;
  std::chrono::seconds lifetime = std::chrono::hours(24);
};

void add_to_name(X509_NAME* name, const char* field, const std::string& value) {
  check(X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(value.c_str()),
                                   -1, -1, 0) == 1);
}

Certificate make(const std::string& name, const Certificate* ca, const Contents& contents) {
  static long serial = 1;
  const Key key(EVP_EC_gen("P-256"));
  const X509Ptr cert(X509_new());
  check(key && cert);
  X509_set_version(cert.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(cert.get()), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(cert.get()), -3600L * 2);
  X509_gmtime_adj(X509_getm_notAfter(cert.get()), contents.lifetime.count());
  X509_set_pubkey(cert.get(), key.get());
  X509_NAME* const subject = X509_get_subject_name(cert.get());
  for (const std::string& organization : contents.organizations) add_to_name(subject, "O", organization);
  add_to_name(subject, "CN", name);

  X509Ptr issuer;
  Key issuer_key;
  if (ca != nullptr) {
    issuer.reset(PEM_read_bio_X509(bio_of(ca->cert_pem).get(), nullptr, nullptr, nullptr));
    issuer_key.reset(PEM_read_bio_PrivateKey(bio_of(ca->key_pem.reveal()).get(), nullptr, nullptr, nullptr));
    check(issuer && issuer_key);
  }
  X509* const signer = issuer ? issuer.get() : cert.get();
  X509_set_issuer_name(cert.get(), X509_get_subject_name(signer));
  add_extension(cert.get(), signer, NID_basic_constraints, ca == nullptr ? "critical,CA:TRUE" : "critical,CA:FALSE");
  if (!contents.alt_names.empty()) add_extension(cert.get(), signer, NID_subject_alt_name, contents.alt_names);
  if (!contents.usage.empty()) add_extension(cert.get(), signer, NID_ext_key_usage, contents.usage);
  check(X509_sign(cert.get(), issuer_key ? issuer_key.get() : key.get(), EVP_sha256()) > 0);

  const Bio cert_out(BIO_new(BIO_s_mem()));
  const Bio key_out(BIO_new(BIO_s_mem()));
  check(PEM_write_bio_X509(cert_out.get(), cert.get()) == 1);
  check(PEM_write_bio_PrivateKey(key_out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return Certificate{text_of(cert_out), base::Secret(text_of(key_out))};
}

}  // namespace

Certificate make_ca(const std::string& name) { return make(name, nullptr, {}); }

Certificate issue(const Certificate& ca, const std::string& name, const std::vector<std::string>& alt_names) {
  std::string joined;
  for (const std::string& alt : alt_names) joined += (joined.empty() ? "" : ",") + alt;
  Contents contents;
  contents.alt_names = joined;
  return make(name, &ca, contents);
}

Certificate issue_client(const Certificate& ca, const std::string& name, const std::vector<std::string>& organizations,
                         const std::string& usage, std::chrono::seconds lifetime) {
  Contents contents;
  contents.organizations = organizations;
  contents.usage = usage;
  contents.lifetime = lifetime;
  return make(name, &ca, contents);
}

}  // namespace spillway::test
