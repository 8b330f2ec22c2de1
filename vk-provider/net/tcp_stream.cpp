#include "vk-provider/net/tcp_stream.hpp"

#include <utility>

#include <openssl/ssl.h>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

#include "vk-provider/net/dialer.hpp"
#include "vk-provider/net/http_message.hpp"
#include "vk-provider/net/raw_stream.hpp"

namespace spillway::net {
namespace {

using base::ErrorKind;

struct FreeTls {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

/// OpenSSL between two buffers; the bytes go through the stream below.
class UnverifiedTls final : public async::ByteStream {
 public:
  UnverifiedTls(async::ByteStreamPtr inner, const std::string& server_name)
      : inner_(std::move(inner)), context_(SSL_CTX_new(TLS_client_method())), ssl_(SSL_new(context_.get())) {
    SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_verify(ssl_.get(), SSL_VERIFY_NONE, nullptr);
    SSL_set_tlsext_host_name(ssl_.get(), server_name.c_str());
    SSL_set_connect_state(ssl_.get());
  }

  async::Task<void> shake_hands(base::Deadline deadline) {
    for (;;) {
      const int done = SSL_do_handshake(ssl_.get());
      auto moved = co_await move_on(done, deadline);
      if (!moved) co_return base::fail(std::move(moved.error()));
      if (done == 1) co_return base::Result<void>();
      if (*moved == Moved::kEnd) co_return base::fail(ErrorKind::kUnavailable, "the peer ended the TLS handshake");
    }
  }

  async::Task<std::string> read(base::Deadline deadline) override {
    std::string bytes(16 * 1024, '\0');
    for (;;) {
      const int n = SSL_read(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
      if (n > 0) {
        bytes.resize(static_cast<size_t>(n));
        co_return bytes;
      }
      if (SSL_get_error(ssl_.get(), n) == SSL_ERROR_ZERO_RETURN) co_return std::string();
      auto moved = co_await move_on(n, deadline);
      if (!moved) co_return base::fail(std::move(moved.error()));
      if (*moved == Moved::kEnd) co_return std::string();
    }
  }

  async::Task<void> write(std::string bytes, base::Deadline deadline) override {
    if (bytes.empty()) co_return base::Result<void>();
    const int n = SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
    if (n <= 0) co_return base::fail(ErrorKind::kUnavailable, "the TLS connection cannot be written to");
    co_return co_await flush(deadline);
  }

  async::Task<void> close_write(base::Deadline deadline) override {
    SSL_shutdown(ssl_.get());
    co_return co_await flush(deadline);
  }

 private:
  enum class Moved : std::uint8_t { kOn, kEnd };

  /// Sends what OpenSSL has to say after `result`, and reads for it if it wants to.
  async::Task<Moved> move_on(int result, base::Deadline deadline) {
    const int why = SSL_get_error(ssl_.get(), result);
    auto sent = co_await flush(deadline);
    if (!sent) co_return base::fail(std::move(sent.error()));
    if (result > 0) co_return Moved::kOn;
    if (why != SSL_ERROR_WANT_READ) co_return base::fail(ErrorKind::kUnavailable, "the peer does not speak TLS");
    auto bytes = co_await inner_->read(deadline);
    if (!bytes) co_return base::fail(std::move(bytes.error()));
    if (bytes->empty()) co_return Moved::kEnd;
    BIO_write(SSL_get_rbio(ssl_.get()), bytes->data(), static_cast<int>(bytes->size()));
    co_return Moved::kOn;
  }

  async::Task<void> flush(base::Deadline deadline) {
    const size_t waiting = BIO_ctrl_pending(SSL_get_wbio(ssl_.get()));
    if (waiting == 0) co_return base::Result<void>();
    std::string bytes(waiting, '\0');
    BIO_read(SSL_get_wbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
    co_return co_await inner_->write(std::move(bytes), deadline);
  }

  async::ByteStreamPtr inner_;
  std::unique_ptr<SSL_CTX, FreeTls> context_;
  std::unique_ptr<SSL, FreeTls> ssl_;
};

}  // namespace

async::Task<async::ByteStreamPtr> connect_tcp(boost::asio::any_io_executor executor, async::Timers& timers,
                                              std::string host, std::uint16_t port, base::Deadline deadline) {
  Endpoint endpoint;
  endpoint.scheme = Endpoint::Scheme::kHttp;
  endpoint.host = std::move(host);
  endpoint.port = port;
  Dialer dialer(executor, timers, std::move(endpoint), nullptr);
  auto connection = co_await dialer.connect(deadline);
  if (!connection) co_return base::fail(std::move(connection.error()));
  co_return std::make_unique<RawStream>(std::move(*connection), dialer.name());
}

async::Task<async::ByteStreamPtr> start_unverified_tls(async::ByteStreamPtr inner, std::string server_name,
                                                       base::Deadline deadline) {
  auto stream = std::make_unique<UnverifiedTls>(std::move(inner), server_name);
  auto done = co_await stream->shake_hands(deadline);
  if (!done) co_return base::fail(std::move(done.error()));
  co_return stream;
}

async::Task<HttpResponse> exchange_head(async::ByteStream& stream, HttpRequest request, std::string host,
                                        base::Deadline deadline) {
  std::string bytes;
  if (auto written = write_request(request, host, bytes); !written) co_return base::fail(std::move(written.error()));
  if (auto sent = co_await stream.write(std::move(bytes), deadline); !sent)
    co_return base::fail(std::move(sent.error()));
  boost::beast::http::response_parser<boost::beast::http::empty_body> parser;
  parser.skip(true);
  std::string input;
  while (!parser.is_header_done()) {
    auto more = co_await stream.read(deadline);
    if (!more) co_return base::fail(std::move(more.error()));
    if (more->empty())
      co_return base::fail(ErrorKind::kUnavailable, "the peer closed the connection before it answered");
    input += *more;
    boost::system::error_code ec;
    const size_t used = parser.put(boost::asio::buffer(input), ec);
    input.erase(0, used);
    if (ec && ec != boost::beast::http::error::need_more) {
      co_return base::fail(ErrorKind::kInvalid, "malformed HTTP response: " + ec.message());
    }
  }
  HttpResponse response;
  response.status = static_cast<int>(parser.get().result_int());
  response.headers = copy_headers(parser.get());
  co_return response;
}

}  // namespace spillway::net
