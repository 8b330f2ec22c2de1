#include "vk-provider/net/tls.hpp"

#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address.hpp>

namespace spillway::net {
namespace asio = boost::asio;

namespace {

std::unique_ptr<TlsContext> make_context(TlsContext::method method) {
  auto context = std::make_unique<TlsContext>(method);
  SSL_CTX* const native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // An idle connection gives its 32 KiB of record buffers back.
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  return context;
}

std::unexpected<base::Error> unreadable(std::string_view what, const boost::system::error_code& ec) {
  return base::fail(base::ErrorKind::kInvalid, "the " + std::string(what) + " cannot be read as PEM: " + ec.message());
}

/// Certificate chain and key; says which of the two is wrong, or that they do not belong together.
base::Result<void> use_identity(TlsContext& context, std::string_view whose, const std::string& cert_pem,
                                const base::Secret& key_pem) {
  boost::system::error_code ec;
  context.use_certificate_chain(asio::buffer(cert_pem), ec);
  if (ec) return unreadable(std::string(whose) + " certificate", ec);
  context.use_private_key(asio::buffer(key_pem.reveal()), TlsContext::pem, ec);
  if (!ec && SSL_CTX_check_private_key(context.native_handle()) == 1) return {};
  if (ec && ec.message().find("mismatch") == std::string::npos) return unreadable(std::string(whose) + " key", ec);
  return base::fail(base::ErrorKind::kInvalid,
                    "the " + std::string(whose) + " key does not belong to the " + std::string(whose) + " certificate");
}

int leave_to_the_request(X509_STORE_CTX*, void*) { return 1; }

void append_name(std::string& list, std::string_view name) {
  if (!list.empty()) list += ':';
  list += name;
}

/// Version and cipher suites.
base::Result<void> limit_ciphers(TlsContext& context, const ServerTls& tls) {
  SSL_CTX* const native = context.native_handle();
  if (tls.min_version == TlsVersion::k13) SSL_CTX_set_min_proto_version(native, TLS1_3_VERSION);
  std::string before_13;
  std::string of_13;
  for (const std::string& suite : tls.cipher_suites) {
    // OpenSSL calls those of TLS 1.3 as IANA does, and the older ones by names of its own.
    const std::string_view name = OPENSSL_cipher_name(suite.c_str());
    if (name == "(NONE)") {
      return base::fail(base::ErrorKind::kInvalid, "there is no cipher suite \"" + suite +
                                                       "\"; they are called as by IANA, for example "
                                                       "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256");
    }
    append_name(name.starts_with("TLS_") ? of_13 : before_13, name);
  }
  // Without a list: forward secrecy and authenticated encryption, which every client of the last ten years has.
  if (before_13.empty()) before_13 = "ECDHE+AESGCM:ECDHE+CHACHA20";
  const bool ok = SSL_CTX_set_cipher_list(native, before_13.c_str()) == 1 &&
                  (of_13.empty() || SSL_CTX_set_ciphersuites(native, of_13.c_str()) == 1);
  if (ok) return {};
  return base::fail(base::ErrorKind::kInvalid,
                    "OpenSSL offers none of these cipher suites: " + before_13 + (of_13.empty() ? "" : ":" + of_13));
}

}  // namespace

base::Result<void> check_cipher_suites(const std::vector<std::string>& names) {
  ServerTls tls;
  tls.cipher_suites = names;
  TlsContext context(TlsContext::tls_server);
  return limit_ciphers(context, tls);
}

base::Result<std::unique_ptr<TlsContext>> make_client_tls(const Endpoint& endpoint) {
  std::unique_ptr<TlsContext> context = make_context(TlsContext::tls_client);
  context->set_verify_mode(asio::ssl::verify_peer);
  boost::system::error_code ec;
  if (endpoint.ca_pem.empty()) {
    context->set_default_verify_paths(ec);
  } else {
    context->add_certificate_authority(asio::buffer(endpoint.ca_pem), ec);
    // As Go does: what is given is trusted, also if it is an intermediate CA.
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context->native_handle()), X509_V_FLAG_PARTIAL_CHAIN);
  }
  if (ec) return unreadable("CA certificate", ec);

  const bool has_cert = !endpoint.client_cert_pem.empty();
  if (has_cert != !endpoint.client_key_pem.empty()) {
    return base::fail(base::ErrorKind::kInvalid, has_cert ? "the client certificate has no client key beside it"
                                                          : "the client key has no client certificate beside it");
  }
  if (has_cert) {
    const auto used = use_identity(*context, "client", endpoint.client_cert_pem, endpoint.client_key_pem);
    if (!used) return base::fail(used.error());
  }
  return context;
}

base::Result<std::unique_ptr<TlsContext>> make_server_tls(const ServerTls& tls) {
  std::unique_ptr<TlsContext> context = make_context(TlsContext::tls_server);
  const auto used = use_identity(*context, "server", tls.cert_pem, tls.key_pem);
  if (!used) return base::fail(used.error());
  const auto limited = limit_ciphers(*context, tls);
  if (!limited) return base::fail(limited.error());
  SSL_CTX* const native = context->native_handle();
  // A resumed session does not say again who the client is.
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(native, SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(native, 0);
  if (!tls.client_ca_pem.empty()) {
    SSL_CTX_set_verify(native, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_cert_verify_callback(native, leave_to_the_request, nullptr);
  }
  return context;
}

base::Result<void> expect_server_name(SSL* ssl, const std::string& name) {
  X509_VERIFY_PARAM* const param = SSL_get0_param(ssl);
  boost::system::error_code not_an_address;
  asio::ip::make_address(name, not_an_address);
  bool ok = false;
  if (!not_an_address) {
    // RFC 6066: SNI carries names only.
    ok = X509_VERIFY_PARAM_set1_ip_asc(param, name.c_str()) == 1;
  } else {
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    ok = X509_VERIFY_PARAM_set1_host(param, name.data(), name.size()) == 1 &&
         SSL_set_tlsext_host_name(ssl, name.c_str()) == 1;
  }
  if (ok) return {};
  return base::fail(base::ErrorKind::kInvalid, "\"" + name + "\" cannot be used as the name of a TLS server");
}

std::string verification_problem(SSL* ssl) {
  const long result = SSL_get_verify_result(ssl);
  if (result == X509_V_OK) return {};
  return X509_verify_cert_error_string(result);
}

}  // namespace spillway::net
