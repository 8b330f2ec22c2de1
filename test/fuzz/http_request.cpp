// Bytes of an HTTP client: a request within its limits, or an error. The first byte says how they are cut.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "vk-provider/api/stream_request.hpp"
#include "vk-provider/net/request_reader.hpp"
#include "vk-provider/net/url.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): the name is libFuzzer's
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spillway;
  constexpr std::size_t kMaxHeader = 128 * 1024;  // as the kubelet API has it
  constexpr std::size_t kMaxBody = 1024;
  if (size == 0) return 0;
  const std::size_t piece = 1 + data[0];
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  boost::beast::flat_buffer input;
  net::RequestReader reader(kMaxHeader, kMaxBody);
  while (!rest.empty() && !reader.done()) {
    const std::string_view part = rest.substr(0, piece);
    rest.remove_prefix(part.size());
    input.commit(boost::asio::buffer_copy(input.prepare(part.size()), boost::asio::buffer(part.data(), part.size())));
    const auto ec = reader.feed(input);
    if (!ec && !reader.done() && input.size() > kMaxHeader) std::abort();  // what is not used is bounded
    if (!ec) continue;
    if (net::RequestReader::refusal(ec) > 599) std::abort();
    return 0;
  }
  if (!reader.done()) return 0;
  const net::HttpServerRequest request = reader.take();
  if (request.body.size() > kMaxBody) std::abort();
  const net::Query query(request.query());
  static_cast<void>(query.all("command"));
  static_cast<void>(net::decode_path_segment(request.path()));
  api::StreamProtocols protocols;
  protocols.spdy = {"v4.channel.k8s.io"};
  protocols.websocket = {"v4.channel.k8s.io"};
  static_cast<void>(api::choose_dialect(request, protocols));
  return 0;
}
