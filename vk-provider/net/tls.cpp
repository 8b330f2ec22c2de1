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

}  // namespace

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

base::Result<std::unique_ptr<TlsContext>> make_server_tls(const std::string& cert_pem, const base::Secret& key_pem) {
  std::unique_ptr<TlsContext> context = make_context(TlsContext::tls_server);
  const auto used = use_identity(*context, "server", cert_pem, key_pem);
  if (!used) return base::fail(used.error());
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
