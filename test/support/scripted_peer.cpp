#include "test/support/scripted_peer.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace spillway::test {
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);

size_t content_length(const std::string& head) {
  static constexpr std::string_view kName = "Content-Length: ";
  const size_t at = head.find(kName);
  size_t length = 0;
  if (at != std::string::npos) std::from_chars(head.data() + at + kName.size(), head.data() + head.size(), length);
  return length;
}

asio::awaitable<bool> receive(tcp::socket& socket, std::string& input) {
  std::array<char, 4096> buffer{};
  const auto [ec, n] = co_await socket.async_read_some(asio::buffer(buffer), kToken);
  input.append(buffer.data(), n);
  co_return !ec;
}

}  // namespace

ScriptedPeer::ScriptedPeer(RealReactor& reactor, std::vector<Script> scripts)
    : reactor_(reactor),
      scripts_(std::move(scripts)),
      acceptor_(reactor.ctx, tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
      group_(reactor.ctx.get_executor()) {
  group_.spawn(accept_loop());
}

ScriptedPeer::~ScriptedPeer() { reactor_.run(group_.stop()); }

net::Endpoint ScriptedPeer::endpoint() const {
  net::Endpoint out;
  out.scheme = net::Endpoint::Scheme::kHttp;
  out.host = "127.0.0.1";
  out.port = acceptor_.local_endpoint().port();
  return out;
}

asio::awaitable<void> ScriptedPeer::accept_loop() {
  for (;;) {
    tcp::socket socket(reactor_.ctx);
    const auto [ec] = co_await acceptor_.async_accept(socket, kToken);
    if (ec) co_return;
    socket.set_option(tcp::no_delay(true));
    const size_t index = std::min<size_t>(static_cast<size_t>(connections_), scripts_.size() - 1);
    ++connections_;
    group_.spawn(serve(std::move(socket), scripts_[index]));
  }
}

asio::awaitable<void> ScriptedPeer::serve(tcp::socket socket, const Script& script) {
  std::string input;
  for (const Step& step : script) {
    if (!co_await perform(socket, step, input)) break;
  }
  ++closed_;
}

asio::awaitable<bool> ScriptedPeer::receive_request(tcp::socket& socket, std::string& input) {
  size_t head_end = std::string::npos;
  while ((head_end = input.find("\r\n\r\n")) == std::string::npos) {
    if (!co_await receive(socket, input)) co_return false;
  }
  const size_t total = head_end + 4 + content_length(input);
  while (input.size() < total) {
    if (!co_await receive(socket, input)) co_return false;
  }
  requests_.push_back(input.substr(0, total));
  input.erase(0, total);
  co_return true;
}

asio::awaitable<bool> ScriptedPeer::perform(tcp::socket& socket, const Step& step, std::string& input) {
  switch (step.kind) {
    case Step::Kind::kTakeRequest: co_return co_await receive_request(socket, input);
    case Step::Kind::kSend: {
      const auto [ec, n] = co_await asio::async_write(socket, asio::buffer(step.bytes), kToken);
      for (int turn = 0; turn < 5; ++turn) co_await asio::post(reactor_.ctx, asio::use_awaitable);
      co_return !ec;
    }
    case Step::Kind::kWaitForClose:
      while (co_await receive(socket, input)) {
      }
      co_return false;
    case Step::Kind::kEcho:
      for (bool open = true; open;) {
        co_await asio::async_write(socket, asio::buffer(input), kToken);
        input.clear();
        open = co_await receive(socket, input);
      }
      co_await asio::async_write(socket, asio::buffer(step.bytes), kToken);
      co_return true;
    case Step::Kind::kReset: socket.set_option(asio::socket_base::linger(true, 0)); co_return false;
  }
  co_return false;
}

}  // namespace spillway::test
