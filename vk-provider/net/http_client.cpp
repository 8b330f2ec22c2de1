#include "vk-provider/net/http_client.hpp"

#include <sys/un.h>

#include <algorithm>

#include <boost/beast/http/string_body.hpp>

#include "vk-provider/net/connection_pool.hpp"
#include "vk-provider/net/dialer.hpp"
#include "vk-provider/net/http_exchange.hpp"
#include "vk-provider/net/http_message.hpp"
#include "vk-provider/net/http_stream.hpp"
#include "vk-provider/net/raw_stream.hpp"
#include "vk-provider/net/url.hpp"

namespace spillway::net {
namespace asio = boost::asio;
namespace http = boost::beast::http;
using base::ErrorKind;

namespace {

constexpr std::uint32_t kMaxHead = 64 * 1024;
constexpr size_t kMaxErrorBody = 64 * 1024;

bool is_read(Method method) { return method == Method::kGet || method == Method::kHead; }

class BeastHttpClient final : public HttpClient {
 public:
  BeastHttpClient(const asio::any_io_executor& executor, async::Timers& timers, Endpoint endpoint,
                  std::unique_ptr<TlsContext> tls)
      : host_(host_header(endpoint)),
        pool_(std::make_shared<ConnectionPool>(executor, timers, std::max<size_t>(1, endpoint.max_connections))),
        dialer_(executor, timers, std::move(endpoint), std::move(tls)) {}

  async::Task<HttpResponse> send(HttpRequest request, base::Deadline deadline) override;
  async::Task<HttpStream> open(HttpRequest request, base::Deadline deadline) override;

 private:
  using TextParser = http::response_parser<http::string_body>;

  /// `answered` says whether any byte of an answer came.
  async::Task<HttpResponse> exchange(const HttpRequest& request, ConnectionPtr connection, base::Deadline deadline,
                                     bool& answered);

  std::string host_;
  std::shared_ptr<ConnectionPool> pool_;
  Dialer dialer_;
};

async::Task<HttpResponse> BeastHttpClient::send(HttpRequest request, base::Deadline deadline) {
  const std::shared_ptr<ConnectionPool> pool = pool_;  // outlives the permit
  const async::Semaphore::Permit permit = co_await pool->permits().acquire(deadline);
  if (!permit) {
    co_return base::fail(ErrorKind::kDeadline, "no connection to " + dialer_.name() + " became free in time");
  }
  bool answered = false;
  if (ConnectionPtr pooled = pool->take()) {
    base::Result<HttpResponse> answer = co_await exchange(request, std::move(pooled), deadline, answered);
    const bool died_idle = !answer && !answered && answer.error().kind == ErrorKind::kUnavailable;
    if (!died_idle || !is_read(request.method)) co_return answer;
  }
  base::Result<ConnectionPtr> fresh = co_await dialer_.connect(deadline);
  if (!fresh) co_return base::fail(fresh.error());
  co_return co_await exchange(request, std::move(*fresh), deadline, answered);
}

async::Task<HttpResponse> BeastHttpClient::exchange(const HttpRequest& request, ConnectionPtr connection,
                                                    base::Deadline deadline, bool& answered) {
  ConnectionLease lease(std::move(connection));
  const base::Result<void> written = write_request(request, host_, lease->output());
  if (!written) co_return base::fail(written.error());

  Exchange exchange(*lease, dialer_.name(), is_read(request.method));
  base::Result<void> done = co_await exchange.write(deadline);
  std::optional<TextParser> parser;
  if (done) {
    done = co_await exchange.read_head(parser, [&request](std::optional<TextParser>& p) {
      p.emplace();
      p->eager(true);
      p->header_limit(kMaxHead);
      p->body_limit(request.max_response);
      p->skip(request.method == Method::kHead);
    });
  }
  if (done) done = co_await exchange.read_rest(*parser);
  answered = exchange.answered();
  if (!done) co_return base::fail(done.error());

  lease->watchdog().disarm();
  HttpResponse response;
  auto& message = parser->get();
  response.status = static_cast<int>(message.result_int());
  response.headers = copy_headers(message);
  response.body = std::move(message.body());
  if (message.keep_alive() && response.status != 101) pool_->put(lease.release());
  co_return response;
}

async::Task<HttpStream> BeastHttpClient::open(HttpRequest request, base::Deadline deadline) {
  base::Result<ConnectionPtr> fresh = co_await dialer_.connect(deadline);
  if (!fresh) co_return base::fail(fresh.error());
  ConnectionLease lease(std::move(*fresh));
  const base::Result<void> written = write_request(request, host_, lease->output());
  if (!written) co_return base::fail(written.error());

  Exchange exchange(*lease, dialer_.name(), is_read(request.method));
  base::Result<void> done = co_await exchange.write(deadline);
  std::unique_ptr<BodyParser> parser;
  if (done) {
    done = co_await exchange.read_head(parser, [&request](std::unique_ptr<BodyParser>& p) {
      p = std::make_unique<BodyParser>();
      p->header_limit(kMaxHead);
      p->body_limit(boost::none);
      p->skip(request.method == Method::kHead);
    });
  }
  if (!done) co_return base::fail(done.error());

  lease->watchdog().disarm();
  HttpStream stream;
  stream.head.status = static_cast<int>(parser->get().result_int());
  stream.head.headers = copy_headers(parser->get());
  if (stream.head.status == 101) {
    stream.body = std::make_unique<RawStream>(lease.release(), dialer_.name());
    co_return stream;
  }
  stream.body = std::make_unique<HttpBodyStream>(lease.release(), std::move(parser), dialer_.name());
  if (stream.head.status < 400) co_return stream;

  // An error's body is an extra: what of it comes in time is enough.
  while (stream.head.body.size() < kMaxErrorBody) {
    const base::Result<std::string> piece = co_await stream.body->read(deadline);
    if (!piece || piece->empty()) break;
    stream.head.body += *piece;
  }
  if (stream.head.body.size() > kMaxErrorBody) stream.head.body.resize(kMaxErrorBody);
  stream.body.reset();
  co_return stream;
}

}  // namespace

base::Result<std::unique_ptr<HttpClient>> BeastHttpClientFactory::make(Endpoint endpoint) {
  if (endpoint.scheme == Endpoint::Scheme::kUnix) {
    constexpr size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
    if (endpoint.unix_path.empty() || endpoint.unix_path.size() > kLongest) {
      return base::fail(ErrorKind::kInvalid, "the path of a Unix socket has from 1 to " + std::to_string(kLongest) +
                                                 " bytes; \"" + endpoint.unix_path + "\" has " +
                                                 std::to_string(endpoint.unix_path.size()));
    }
  } else if (endpoint.host.empty()) {
    return base::fail(ErrorKind::kInvalid, "an endpoint needs a host");
  }
  std::unique_ptr<TlsContext> tls;
  if (endpoint.scheme == Endpoint::Scheme::kHttps) {
    base::Result<std::unique_ptr<TlsContext>> made = make_client_tls(endpoint);
    if (!made) return base::fail(made.error());
    tls = std::move(*made);
  }
  return std::make_unique<BeastHttpClient>(executor_, timers_, std::move(endpoint), std::move(tls));
}

}  // namespace spillway::net
