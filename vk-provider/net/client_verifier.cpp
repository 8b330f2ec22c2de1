#include "vk-provider/net/client_verifier.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

#include "vk-provider/net/openssl_ptr.hpp"

namespace spillway::net {
namespace {

using Bio = std::unique_ptr<BIO, OpensslDeleter<BIO_free>>;
using Certificate = std::unique_ptr<X509, OpensslDeleter<X509_free>>;
using Verification = std::unique_ptr<X509_STORE_CTX, OpensslDeleter<X509_STORE_CTX_free>>;

std::string utf8(const X509_NAME_ENTRY* entry) {
  unsigned char* text = nullptr;
  const int size = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(entry));
  if (size < 0) return {};
  std::string out(reinterpret_cast<const char*>(text), static_cast<size_t>(size));
  OPENSSL_free(text);
  return out;
}

/// The last common name and all organizations, as Go reads a subject.
void read_subject(const X509* certificate, PeerCertificate& out) {
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  for (int i = 0; i < X509_NAME_entry_count(subject); ++i) {
    const X509_NAME_ENTRY* const entry = X509_NAME_get_entry(subject, i);
    const int what = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
    if (what == NID_commonName) out.common_name = utf8(entry);
    if (what == NID_organizationName) out.organizations.push_back(utf8(entry));
  }
}

}  // namespace

base::Result<std::unique_ptr<ClientVerifier>> ClientVerifier::make(const std::string& ca_pem) {
  auto verifier = std::make_unique<ClientVerifier>();
  verifier->store_.reset(X509_STORE_new());
  X509_STORE_set_flags(verifier->store_.get(), X509_V_FLAG_PARTIAL_CHAIN);
  const Bio bio(BIO_new_mem_buf(ca_pem.data(), static_cast<int>(ca_pem.size())));
  int count = 0;
  for (; bio; ++count) {
    const Certificate ca(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (!ca || X509_STORE_add_cert(verifier->store_.get(), ca.get()) != 1) break;
  }
  // The end of the text is an error, too, but the expected one.
  const bool whole = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (count > 0 && whole) return verifier;
  return base::fail(base::ErrorKind::kInvalid, "the CA of client certificates cannot be read as PEM");
}

std::optional<PeerCertificate> ClientVerifier::look_at(const SSL* ssl) const {
  X509* const shown = SSL_get0_peer_certificate(ssl);
  if (shown == nullptr) return std::nullopt;
  PeerCertificate out;
  const Verification verification(X509_STORE_CTX_new());
  if (!verification ||
      X509_STORE_CTX_init(verification.get(), store_.get(), shown, SSL_get_peer_cert_chain(ssl)) != 1 ||
      X509_STORE_CTX_set_default(verification.get(), "ssl_client") != 1) {
    out.problem = "it cannot be verified";
    ERR_clear_error();
    return out;
  }
  if (X509_verify_cert(verification.get()) == 1) {
    read_subject(shown, out);
  } else {
    out.problem = X509_verify_cert_error_string(X509_STORE_CTX_get_error(verification.get()));
    ERR_clear_error();
  }
  return out;
}

}  // namespace spillway::net
