// A TCP peer that does exactly what its scripts say, byte by byte: for answers that no decent server would give.
//
// The n-th connection follows the n-th script, later ones the last. A script that has ended closes its connection.
#pragma once

#include <string>
#include <vector>

#include <boost/asio/ip/tcp.hpp>

#include "test/support/real_reactor.hpp"
#include "vk-provider/net/http.hpp"

namespace spillway::test {

struct Step {
  enum class Kind { kTakeRequest, kSend, kWaitForClose, kEcho, kReset };
  Kind kind = Kind::kTakeRequest;
  std::string bytes;
};
using Script = std::vector<Step>;

/// Reads one request: its head, and as many bytes more as its Content-Length says.
inline Step take_request() { return Step{Step::Kind::kTakeRequest, {}}; }
/// The reactor gets several turns before the next step, so that pieces are read as pieces.
inline Step send_bytes(std::string bytes) { return Step{Step::Kind::kSend, std::move(bytes)}; }
/// Says nothing until the other side closes.
inline Step wait_for_close() { return Step{Step::Kind::kWaitForClose, {}}; }
/// Sends back what comes, until the other side ends its half; then `bytes`.
inline Step echo_then(std::string bytes) { return Step{Step::Kind::kEcho, std::move(bytes)}; }
/// Closes with a reset.
inline Step reset() { return Step{Step::Kind::kReset, {}}; }

class ScriptedPeer {
 public:
  ScriptedPeer(RealReactor& reactor, std::vector<Script> scripts);
  ~ScriptedPeer();

  net::Endpoint endpoint() const;
  int connections() const { return connections_; }
  int closed() const { return closed_; }
  /// As they came, over all connections.
  const std::vector<std::string>& requests() const { return requests_; }

 private:
  boost::asio::awaitable<void> accept_loop();
  boost::asio::awaitable<void> serve(boost::asio::ip::tcp::socket socket, const Script& script);
  boost::asio::awaitable<bool> perform(boost::asio::ip::tcp::socket& socket, const Step& step, std::string& input);
  boost::asio::awaitable<bool> receive_request(boost::asio::ip::tcp::socket& socket, std::string& input);

  RealReactor& reactor_;
  std::vector<Script> scripts_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::vector<std::string> requests_;
  int connections_ = 0;
  int closed_ = 0;
  async::TaskGroup group_;
};

}  // namespace spillway::test
