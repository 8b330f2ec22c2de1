#include "vk-provider/net/certificate.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <boost/asio/ip/address.hpp>

#include "vk-provider/net/openssl_ptr.hpp"

namespace spillway::net {
namespace asio = boost::asio;
using base::ErrorKind;

namespace {

using BioPtr = std::unique_ptr<BIO, OpensslDeleter<BIO_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, OpensslDeleter<EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, OpensslDeleter<X509_free>>;
using RequestPtr = std::unique_ptr<X509_REQ, OpensslDeleter<X509_REQ_free>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, OpensslDeleter<X509_EXTENSION_free>>;
using NumberPtr = std::unique_ptr<BIGNUM, OpensslDeleter<BN_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, OpensslDeleter<GENERAL_NAMES_free>>;

struct ExtensionsDeleter {
  void operator()(STACK_OF(X509_EXTENSION) * list) const { sk_X509_EXTENSION_pop_free(list, X509_EXTENSION_free); }
};
using ExtensionsPtr = std::unique_ptr<STACK_OF(X509_EXTENSION), ExtensionsDeleter>;

constexpr int kSerialBits = 127;

std::unexpected<base::Error> failed(const char* what) {
  const char* const why = ERR_reason_error_string(ERR_get_error());
  ERR_clear_error();
  return base::fail(ErrorKind::kInvalid,
                    std::string("cannot make ") + what + (why == nullptr ? "" : std::string(": ") + why));
}

BioPtr bio_of(std::string_view text) { return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

KeyPtr read_key(const base::Secret& pem) {
  return KeyPtr(PEM_read_bio_PrivateKey(bio_of(pem.reveal()).get(), nullptr, nullptr, nullptr));
}

/// Not MBSTRING_UTF8, which takes 64 bytes at most: the name of a node alone may have 63.
bool add_entry(X509_NAME* name, const char* field, const std::string& value) {
  return X509_NAME_add_entry_by_txt(name, field, V_ASN1_UTF8STRING,
                                    reinterpret_cast<const unsigned char*>(value.data()),
                                    static_cast<int>(value.size()), -1, 0) == 1;
}

bool write_name(X509_NAME* name, const CertificateSubject& subject) {
  for (const std::string& organization : subject.organizations) {
    if (!add_entry(name, "O", organization)) return false;
  }
  return add_entry(name, "CN", subject.common_name);
}

/// The extension's value in OpenSSL's words. Names come from a checked configuration, but a comma would still be read
/// as the begin of another one.
bool alt_names(const CertificateSubject& subject, std::string& out) {
  for (const std::string& name : subject.dns_names) {
    if (name.find_first_of(",\n ") != std::string::npos) return false;
    out += (out.empty() ? "DNS:" : ",DNS:") + name;
  }
  for (const std::string& address : subject.ip_addresses) {
    boost::system::error_code ec;
    const auto parsed = asio::ip::make_address(address, ec);
    if (ec || (parsed.is_v6() && parsed.to_v6().scope_id() != 0)) return false;
    out += (out.empty() ? "IP:" : ",IP:") + parsed.to_string();
  }
  return true;
}

ExtensionPtr make_extension(int nid, const std::string& value) {
  return ExtensionPtr(X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str()));
}

bool set_random_serial(X509* certificate) {
  const NumberPtr number(BN_new());
  return number && BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool set_time(ASN1_TIME* out, base::WallTime when) {
  return ASN1_TIME_set(out, std::chrono::system_clock::to_time_t(when)) != nullptr;
}

base::WallTime read_time(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return {};
  return std::chrono::sys_seconds(std::chrono::seconds(timegm(&parts)));
}

std::string name_of(const X509_NAME* name) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_ONELINE & ~XN_FLAG_SPC_EQ);
  return text_of(bio.get());
}

std::string address_of(const ASN1_OCTET_STRING* bytes) {
  const unsigned char* const data = ASN1_STRING_get0_data(bytes);
  const int size = ASN1_STRING_length(bytes);
  if (size == 4) {
    asio::ip::address_v4::bytes_type v4{};
    std::copy_n(data, v4.size(), v4.begin());
    return asio::ip::address_v4(v4).to_string();
  }
  if (size != 16) return {};
  asio::ip::address_v6::bytes_type v6{};
  std::copy_n(data, v6.size(), v6.begin());
  return asio::ip::address_v6(v6).to_string();
}

void read_alt_names(const X509* certificate, CertificateFacts& out) {
  const NamesPtr names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) {
      const auto* text = reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName));
      out.dns_names.emplace_back(text, static_cast<size_t>(ASN1_STRING_length(name->d.dNSName)));
    } else if (name->type == GEN_IPADD) {
      out.ip_addresses.push_back(address_of(name->d.iPAddress));
    }
  }
}

}  // namespace

base::Result<base::Secret> make_key() {
  const KeyPtr key(EVP_EC_gen("P-256"));
  const BioPtr out(BIO_new(BIO_s_secmem()));
  if (!key || !out || PEM_write_bio_PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return failed("a private key");
  }
  return base::Secret(text_of(out.get()));
}

base::Result<std::string> make_signing_request(const base::Secret& key_pem, const CertificateSubject& subject) {
  constexpr const char* kWhat = "a certificate signing request";
  const KeyPtr key = read_key(key_pem);
  const RequestPtr request(X509_REQ_new());
  std::string names;
  if (!key || !request || !write_name(X509_REQ_get_subject_name(request.get()), subject) ||
      !alt_names(subject, names)) {
    return failed(kWhat);
  }
  if (!names.empty()) {
    const ExtensionsPtr extensions(sk_X509_EXTENSION_new_null());
    ExtensionPtr extension = make_extension(NID_subject_alt_name, names);
    if (!extensions || !extension || sk_X509_EXTENSION_push(extensions.get(), extension.get()) == 0) {
      return failed(kWhat);
    }
    static_cast<void>(extension.release());
    if (X509_REQ_add_extensions(request.get(), extensions.get()) != 1) return failed(kWhat);
  }
  const BioPtr out(BIO_new(BIO_s_mem()));
  if (X509_REQ_set_pubkey(request.get(), key.get()) != 1 ||
      X509_REQ_sign(request.get(), key.get(), EVP_sha256()) <= 0 ||
      PEM_write_bio_X509_REQ(out.get(), request.get()) != 1) {
    return failed(kWhat);
  }
  return text_of(out.get());
}

base::Result<std::string> self_sign(const base::Secret& key_pem, const CertificateSubject& subject,
                                    base::WallTime not_before, base::WallTime not_after) {
  constexpr const char* kWhat = "a certificate";
  const KeyPtr key = read_key(key_pem);
  const CertificatePtr certificate(X509_new());
  std::string names;
  if (!key || !certificate || !alt_names(subject, names)) return failed(kWhat);
  X509* const c = certificate.get();
  X509_NAME* const name = X509_get_subject_name(c);
  bool ok = X509_set_version(c, X509_VERSION_3) == 1 && set_random_serial(c) && write_name(name, subject) &&
            X509_set_issuer_name(c, name) == 1 && set_time(X509_getm_notBefore(c), not_before) &&
            set_time(X509_getm_notAfter(c), not_after) && X509_set_pubkey(c, key.get()) == 1;
  const auto add = [&](int nid, const std::string& value) {
    const ExtensionPtr extension = make_extension(nid, value);
    ok = ok && extension && X509_add_ext(c, extension.get(), -1) == 1;
  };
  add(NID_basic_constraints, "critical,CA:FALSE");
  add(NID_key_usage, "critical,digitalSignature");
  add(NID_ext_key_usage, "serverAuth");
  if (!names.empty()) add(NID_subject_alt_name, names);
  const BioPtr out(BIO_new(BIO_s_mem()));
  if (!ok || X509_sign(c, key.get(), EVP_sha256()) <= 0 || PEM_write_bio_X509(out.get(), c) != 1) return failed(kWhat);
  return text_of(out.get());
}

base::Result<CertificateFacts> read_certificate(std::string_view pem) {
  const CertificatePtr certificate(PEM_read_bio_X509(bio_of(pem).get(), nullptr, nullptr, nullptr));
  if (!certificate) {
    ERR_clear_error();
    return base::fail(ErrorKind::kInvalid, "there is no certificate in the PEM text");
  }
  CertificateFacts out;
  out.subject = name_of(X509_get_subject_name(certificate.get()));
  out.issuer = name_of(X509_get_issuer_name(certificate.get()));
  out.not_before = read_time(X509_get0_notBefore(certificate.get()));
  out.not_after = read_time(X509_get0_notAfter(certificate.get()));
  read_alt_names(certificate.get(), out);
  return out;
}

}  // namespace spillway::net
