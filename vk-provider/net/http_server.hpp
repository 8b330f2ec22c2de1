// A small HTTP/1.1 server: admin port, fake cloud, kubelet API.
//
// Owned by a component, which awaits stop() before it dies; reactor thread only. One handler answers all requests, each
// in the coroutine of its connection. Everything that a peer may hold on to is limited: connections, streams, header,
// body, time. Says who a client is by its certificate; what it may do is the handler's affair. Does not route, compress
// or log.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/net/http.hpp"

namespace spillway::net {

/// What a client showed in the TLS handshake. Its names are there only if a CA of client_ca_pem vouches for them.
struct PeerCertificate {
  PeerCertificate() = default;
  std::string common_name;
  std::vector<std::string> organizations;
  std::string problem;  // why it is not believed; empty: it is

  bool trusted() const { return problem.empty(); }
};

struct HttpServerRequest {
  HttpServerRequest() = default;
  std::string method;  // as sent: GET
  std::string target;  // path and query, still encoded
  std::vector<Header> headers;
  std::string body;
  bool from_loopback = false;                       // a loopback address or a Unix socket
  std::optional<PeerCertificate> peer_certificate;  // absent: none was shown, or none was asked for

  /// Case-insensitive; the first of that name.
  std::optional<std::string_view> header(std::string_view name) const { return find_header(headers, name); }
  /// The target up to `?`.
  std::string_view path() const { return std::string_view(target).substr(0, target.find('?')); }
  /// What follows `?`; empty without one.
  std::string_view query() const {
    const size_t mark = target.find('?');
    return mark == std::string::npos ? std::string_view() : std::string_view(target).substr(mark + 1);
  }
};

/// Takes over a connection as it stands after a request. Nothing was answered: what is to be said, 101 first, is its
/// affair. The connection closes when it returns; a stop of the server that is out of patience cancels it.
using TakeOver = std::move_only_function<boost::asio::awaitable<void>(async::ByteStreamPtr)>;

struct HttpServerResponse {
  HttpServerResponse() = default;
  HttpServerResponse(int code, std::string type, std::string text)
      : status(code), content_type(std::move(type)), body(std::move(text)) {}
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::vector<Header> headers;  // more than Content-Type, Content-Length and Connection
  std::string body;
  /// Set: the body comes from here, piece by piece, each on its way before the next is read. Reading ends, and the
  /// stream dies, as soon as the client is gone. An error cuts the connection: the client sees that something lacks.
  async::ByteStreamPtr stream;
  TakeOver take_over;    // set: all else does not count
  bool hang_up = false;  // closes the connection without an answer: for servers that imitate a broken network
};

enum class TlsVersion : std::uint8_t { k12, k13 };

/// How a server speaks TLS.
struct ServerTls {
  ServerTls() = default;
  std::string cert_pem;  // its own first, then those that lead to its CA
  base::Secret key_pem;
  /// Set: a client is asked for a certificate, and may come without one. Who signed it is looked at per request
  /// (PeerCertificate), never in the handshake.
  std::string client_ca_pem;
  TlsVersion min_version = TlsVersion::k12;
  /// By their IANA names, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256. Those of TLS 1.3 and those before it are two lists:
  /// of a list that names none the usual ones stay.
  std::vector<std::string> cipher_suites;
};

/// kInvalid for a name of ServerTls::cipher_suites that there is not, with what was expected.
base::Result<void> check_cipher_suites(const std::vector<std::string>& names);

struct HttpServerConfig {
  HttpServerConfig() = default;
  std::string host = "127.0.0.1";  // an address, not a name
  std::uint16_t port = 0;          // 0: a free one, see port()
  std::string unix_path;           // set: listens there instead; the directory guards it and is the caller's
  ServerTls tls;                   // with a certificate: TLS (TCP only)

  std::size_t max_header = 16 * 1024;
  std::size_t max_body = 8 * 1024 * 1024;
  std::size_t max_connections = 256;  // more wait in the kernel's queue
  std::size_t max_streams = 256;      // of them: streamed answers and connections taken over; more are answered 503
  base::Duration idle_time{std::chrono::seconds(60)};
  base::Duration header_time{std::chrono::seconds(10)};    // from the first byte to the end of the headers
  base::Duration transfer_time{std::chrono::seconds(30)};  // for a body to come, or an answer to be taken
  /// For a piece of a streamed answer to be taken: who pages through a log may rest for long.
  base::Duration stall_time{std::chrono::hours(4)};
};

class HttpServer {
 public:
  /// Its errors are answers, too: it does not throw, but for cancellation.
  using Handler = std::function<boost::asio::awaitable<HttpServerResponse>(HttpServerRequest)>;

  HttpServer(boost::asio::any_io_executor executor, async::Timers& timers, HttpServerConfig config, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Begins to listen. kInvalid for an address, path or certificate that cannot be used; kConflict if somebody else
  /// listens there.
  base::Result<void> start();
  /// After start(), for TCP.
  std::uint16_t port() const;
  std::size_t connections() const;
  /// Those of them that carry a streamed answer, or were taken over.
  std::size_t streams() const;

  /// Another certificate, or other CAs, for the handshakes and requests to come; connections go on. kInvalid: all stays
  /// as it was, also if this server speaks no TLS.
  base::Result<void> replace_tls(ServerTls tls);

  /// Accepts no more, ends idle connections at once and the others after their answer, or at the deadline. Streams are
  /// given until then, too.
  boost::asio::awaitable<void> stop(base::Deadline deadline);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace spillway::net
