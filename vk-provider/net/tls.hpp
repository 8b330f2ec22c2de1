// TLS contexts from PEM texts: at least TLS 1.2, and a client always verifies.
//
// A context is owned by the client or server that uses it; reactor thread only. Connections that were begun with it go
// on when it is replaced. Does not read files and does not reload: who renews a certificate makes a new context.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/ssl/context.hpp>

#include "vk-provider/base/error.hpp"
#include "vk-provider/base/secret.hpp"
#include "vk-provider/net/http.hpp"
#include "vk-provider/net/http_server.hpp"

namespace spillway::net {

using TlsContext = boost::asio::ssl::context;

/// For Endpoint::ca_pem, client_cert_pem, client_key_pem. kInvalid names the text that cannot be read.
base::Result<std::unique_ptr<TlsContext>> make_client_tls(const Endpoint& endpoint);

/// kInvalid names the text that cannot be read, or the suite that there is not.
base::Result<std::unique_ptr<TlsContext>> make_server_tls(const ServerTls& tls);

/// Sets SNI and the name (or IP address) that the server's certificate must carry.
base::Result<void> expect_server_name(SSL* ssl, const std::string& name);

/// Why the handshake failed, if it was the verification of the server; empty otherwise.
std::string verification_problem(SSL* ssl);

}  // namespace spillway::net
