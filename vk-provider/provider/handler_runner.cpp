#include "vk-provider/provider/handler_runner.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "vk-provider/net/grpc_health.hpp"
#include "vk-provider/net/tcp_stream.hpp"
#include "vk-provider/net/url.hpp"

namespace spillway::provider {
namespace {

using namespace boost::asio::experimental::awaitable_operators;  // NOLINT(google-build-using-namespace)
using base::ErrorKind;
using model::Handler;

constexpr int kRedirects = 10;
constexpr size_t kOutput = 1024;

/// Reads to the end, and keeps the beginning.
async::Task<std::string> drain(async::ByteStream* stream, base::Deadline deadline) {
  std::string text;
  for (;;) {
    if (stream == nullptr) co_return text;
    auto bytes = co_await stream->read(deadline);
    if (!bytes) co_return base::fail(std::move(bytes.error()));
    if (bytes->empty()) co_return text;
    if (text.size() < kOutput) text.append(*bytes, 0, kOutput - text.size());
  }
}

/// A path as it may stand in a request line; what somebody wrote into a manifest may hold anything.
std::string request_target(const std::string& path) {
  std::string out = path.starts_with('/') ? "" : "/";
  for (const char c : path.substr(0, path.find('#'))) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte < 0x7f) {
      out += c;
    } else {
      out += '%';
      out += "0123456789ABCDEF"[byte >> 4U];
      out += "0123456789ABCDEF"[byte & 15U];
    }
  }
  return out;
}

net::Endpoint endpoint_of(const HandlerTarget& target, const Handler& handler) {
  net::Endpoint endpoint;
  endpoint.scheme = handler.https ? net::Endpoint::Scheme::kHttps : net::Endpoint::Scheme::kHttp;
  endpoint.host = !handler.host.empty() ? handler.host : target.address.empty() ? "localhost" : target.address;
  endpoint.port = static_cast<std::uint16_t>(handler.port);
  return endpoint;
}

/// Where a redirect leads on the same host; empty if it leads to another one, which counts as a success.
std::optional<std::string> next_path(std::string_view location, const net::Endpoint& here) {
  if (location.starts_with('/') && !location.starts_with("//")) return std::string(location);
  const auto url = net::parse_url(location);
  if (!url || url->endpoint.host != here.host || url->endpoint.port != here.port ||
      url->endpoint.scheme != here.scheme) {
    return std::nullopt;
  }
  return url->path;
}

std::unexpected<base::Error> too_late() { return base::fail(ErrorKind::kDeadline, "it did not end in time"); }

}  // namespace

async::Task<void> HandlerRunner::run(HandlerTarget target, Handler handler, base::Deadline deadline) {
  switch (handler.kind) {
    case Handler::Kind::kExec: co_return co_await exec(target, handler, deadline);
    case Handler::Kind::kHttpGet: co_return co_await http_get(target, handler, deadline);
    case Handler::Kind::kTcpSocket: {
      auto stream = co_await open(target, handler, deadline);
      if (!stream) co_return base::fail(std::move(stream.error()));
      co_return base::Result<void>();
    }
    case Handler::Kind::kGrpc: {
      auto stream = co_await open(target, handler, deadline);
      if (!stream) co_return base::fail(std::move(stream.error()));
      co_return co_await net::check_grpc_health(**stream, handler.service, deadline);
    }
    case Handler::Kind::kSleep: {
      const base::TimePoint end = timers_.now() + handler.sleep;
      co_await timers_.sleep_until(std::min(end, deadline));
      if (end > deadline) co_return too_late();
      co_return base::Result<void>();
    }
  }
  co_return base::fail(ErrorKind::kInternal, "an unknown kind of handler");
}

async::Task<void> HandlerRunner::exec(const HandlerTarget& target, const Handler& handler, base::Deadline deadline) {
  ExecOptions options;
  options.container = target.container;
  options.command = handler.command;
  options.repeated = true;
  auto session = co_await target.provider->open_exec(target.ref, std::move(options), deadline);
  if (!session) co_return base::fail(std::move(session.error()));
  ExecSession& process = **session;
  // Both at once: a process stands still as long as one of them is full.
  auto [output, errors] = co_await (drain(&process.output(), deadline) && drain(process.errors(), deadline));
  if (!output || !errors) co_return base::fail(output ? std::move(errors.error()) : std::move(output.error()));
  if (output->size() < kOutput) output->append(*errors, 0, kOutput - output->size());
  auto code = co_await process.exit_code(deadline);
  if (!code) co_return base::fail(std::move(code.error()));
  if (*code == 0) co_return base::Result<void>();
  co_return base::fail(ErrorKind::kInvalid,
                       "exit code " + std::to_string(*code) + (output->empty() ? "" : ": ") + *output);
}

async::Task<async::ByteStreamPtr> HandlerRunner::open(const HandlerTarget& target, const Handler& handler,
                                                      base::Deadline deadline) {
  if (!handler.host.empty()) co_return co_await connect_(handler.host, handler.port, deadline);
  if (!target.address.empty()) co_return co_await connect_(target.address, handler.port, deadline);
  co_return co_await target.provider->dial(target.ref, handler.port, deadline);
}

async::Task<net::HttpResponse> HandlerRunner::get_once(const HandlerTarget& target, const Handler& handler,
                                                       const std::string& path, base::Deadline deadline) {
  const net::Endpoint endpoint = endpoint_of(target, handler);
  auto stream = co_await open(target, handler, deadline);
  if (!stream) co_return base::fail(std::move(stream.error()));
  if (handler.https) {
    stream = co_await net::start_unverified_tls(std::move(*stream), endpoint.host, deadline);
    if (!stream) co_return base::fail(std::move(stream.error()));
  }
  net::HttpRequest request;
  request.target = path;
  std::string host = net::host_header(endpoint);
  for (const model::HttpHeader& header : handler.headers) {
    request.headers.emplace_back(header.name, header.value);
  }
  if (const auto own = net::find_header(request.headers, "Host")) host = std::string(*own);
  std::erase_if(request.headers, [](const net::Header& h) { return net::find_header({h}, "Host").has_value(); });
  if (!net::find_header(request.headers, "User-Agent"))
    request.headers.emplace_back("User-Agent", "kube-probe/spillway");
  if (!net::find_header(request.headers, "Accept")) request.headers.emplace_back("Accept", "*/*");
  request.headers.emplace_back("Connection", "close");
  co_return co_await net::exchange_head(**stream, std::move(request), std::move(host), deadline);
}

async::Task<void> HandlerRunner::http_get(const HandlerTarget& target, const Handler& handler,
                                          base::Deadline deadline) {
  std::string path = request_target(handler.path);
  for (int i = 0; i <= kRedirects; ++i) {
    auto response = co_await get_once(target, handler, path, deadline);
    if (!response) co_return base::fail(std::move(response.error()));
    if (response->status < 200 || response->status >= 400) {
      co_return base::fail(ErrorKind::kInvalid,
                           "HTTP probe failed with statuscode: " + std::to_string(response->status));
    }
    const auto location = response->header("Location");
    if (response->status < 300 || !location) co_return base::Result<void>();
    const auto next = next_path(*location, endpoint_of(target, handler));
    if (!next) co_return base::Result<void>();
    path = request_target(*next);
  }
  co_return base::fail(ErrorKind::kInvalid, "stopped after 10 redirects");
}

}  // namespace spillway::provider
