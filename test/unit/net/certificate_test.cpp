#include "vk-provider/net/certificate.hpp"

#include <catch2/catch.hpp>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "vk-provider/net/tls.hpp"

using namespace spillway;
using namespace spillway::net;

namespace {

CertificateSubject a_node() {
  CertificateSubject subject;
  subject.common_name = "system:node:burst";
  subject.organizations = {"system:nodes"};
  subject.dns_names = {"burst"};
  subject.ip_addresses = {"198.51.100.10", "2001:db8::1"};
  return subject;
}

ServerTls pair(const std::string& cert_pem, const base::Secret& key_pem) {
  ServerTls tls;
  tls.cert_pem = cert_pem;
  tls.key_pem = key_pem;
  return tls;
}

const base::WallTime kBegin = std::chrono::sys_days(std::chrono::year(2026) / 11 / 29);
const base::WallTime kEnd = kBegin + std::chrono::days(365);

}  // namespace

TEST_CASE("a self-signed certificate says whom it speaks for, and until when") {
  const auto key = make_key();
  REQUIRE(key.has_value());
  const auto pem = self_sign(*key, a_node(), kBegin, kEnd);
  REQUIRE(pem.has_value());
  const auto facts = read_certificate(*pem);
  REQUIRE(facts.has_value());
  CHECK(facts->subject == "O=system:nodes, CN=system:node:burst");
  CHECK(facts->issuer == facts->subject);
  CHECK(facts->not_before == kBegin);
  CHECK(facts->not_after == kEnd);
  CHECK(facts->dns_names == std::vector<std::string>{"burst"});
  CHECK(facts->ip_addresses == std::vector<std::string>{"198.51.100.10", "2001:db8::1"});
  CHECK(make_server_tls(pair(*pem, *key)).has_value());
}

TEST_CASE("two keys are two keys, and each fits its own certificate only") {
  const auto one = make_key();
  const auto other = make_key();
  REQUIRE((one && other));
  CHECK_FALSE(*one == *other);
  CHECK(one->reveal().starts_with("-----BEGIN PRIVATE KEY-----"));
  const auto pem = self_sign(*one, a_node(), kBegin, kEnd);
  REQUIRE(pem.has_value());
  CHECK(make_server_tls(pair(*pem, *one)).has_value());
  CHECK_FALSE(make_server_tls(pair(*pem, *other)).has_value());
}

TEST_CASE("a signing request holds what the signer of kubelets wants, and is signed by its key") {
  const auto key = make_key();
  REQUIRE(key.has_value());
  const auto pem = make_signing_request(*key, a_node());
  REQUIRE(pem.has_value());
  BIO* const bio = BIO_new_mem_buf(pem->data(), static_cast<int>(pem->size()));
  X509_REQ* const request = PEM_read_bio_X509_REQ(bio, nullptr, nullptr, nullptr);
  REQUIRE(request != nullptr);
  CHECK(X509_REQ_verify(request, X509_REQ_get0_pubkey(request)) == 1);
  X509_NAME* const name = X509_REQ_get_subject_name(request);
  CHECK(X509_NAME_entry_count(name) == 2);
  STACK_OF(X509_EXTENSION)* const extensions = X509_REQ_get_extensions(request);
  REQUIRE(sk_X509_EXTENSION_num(extensions) == 1);
  BIO* const text = BIO_new(BIO_s_mem());
  X509V3_EXT_print(text, sk_X509_EXTENSION_value(extensions, 0), 0, 0);
  char* data = nullptr;
  const long size = BIO_get_mem_data(text, &data);
  CHECK(std::string(data, static_cast<size_t>(size)) ==
        "DNS:burst, IP Address:198.51.100.10, IP Address:2001:DB8:0:0:0:0:0:1");
  BIO_free(text);
  sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
  X509_REQ_free(request);
  BIO_free(bio);
}

TEST_CASE("the longest name of a node fits") {
  CertificateSubject subject = a_node();
  subject.common_name = "system:node:" + std::string(63, 'n');
  const auto key = make_key();
  REQUIRE(key.has_value());
  CHECK(make_signing_request(*key, subject).has_value());
  CHECK(read_certificate(self_sign(*key, subject, kBegin, kEnd).value())->subject ==
        "O=system:nodes, CN=" + subject.common_name);
}

TEST_CASE("a subject that cannot be written is refused") {
  const auto key = make_key();
  REQUIRE(key.has_value());
  CertificateSubject subject = a_node();
  SECTION("an address that is none") { subject.ip_addresses = {"burst"}; }
  SECTION("a name that smuggles another in") { subject.dns_names = {"burst,DNS:kubernetes.default"}; }
  CHECK_FALSE(make_signing_request(*key, subject).has_value());
  CHECK(self_sign(*key, subject, kBegin, kEnd).error().kind == base::ErrorKind::kInvalid);
}

TEST_CASE("what is no certificate is told from one") {
  CHECK_FALSE(read_certificate("").has_value());
  CHECK_FALSE(read_certificate("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").has_value());
  CHECK(make_signing_request(base::Secret("no key"), a_node())
            .error()
            .message.starts_with("cannot make a certificate signing request"));
}
