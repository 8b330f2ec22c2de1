#include "vk-provider/api/stream_request.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/api/remote_status_codec.hpp"
#include "vk-provider/net/websocket.hpp"

namespace spillway::api {
namespace {

constexpr std::string_view kVersionHeader = "X-Stream-Protocol-Version";

std::unexpected<net::HttpServerResponse> refused(int status, const std::string& why) {
  return std::unexpected(refuse_stream(status, "unable to upgrade: " + why));
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

/// The first of the client's that is ours, too; null if there is none.
const std::string* first_common(const std::vector<std::string>& client, const std::vector<std::string>& ours) {
  const auto found = std::ranges::find_if(
      client, [&ours](const std::string& name) { return std::ranges::find(ours, name) != ours.end(); });
  return found == client.end() ? nullptr : &*found;
}

std::expected<StreamDialect, net::HttpServerResponse> choose_websocket(const net::HttpServerRequest& request,
                                                                       const std::vector<std::string>& ours) {
  std::vector<std::string> client = net::list_header(request.headers, "Sec-WebSocket-Protocol");
  if (client.empty()) client.emplace_back();
  const std::string* const common = first_common(client, ours);
  if (common == nullptr) {
    return refused(403, "the client speaks \"" + joined(client) + "\", this server speaks " + joined(ours));
  }
  StreamDialect dialect;
  dialect.websocket = true;
  dialect.protocol = *common;
  return dialect;
}

}  // namespace

net::HttpServerResponse refuse_stream(int status, const std::string& message) {
  return {status, "application/json", encode_refusal(status, message)};
}

std::expected<StreamDialect, net::HttpServerResponse> choose_dialect(const net::HttpServerRequest& request,
                                                                     const StreamProtocols& protocols) {
  if (net::asks_for_websocket(request)) return choose_websocket(request, protocols.websocket);
  const std::vector<std::string> client = net::list_header(request.headers, kVersionHeader);
  if (client.empty()) return refused(400, "the header " + std::string(kVersionHeader) + " is missing or empty");
  const std::string* const common = first_common(client, protocols.spdy);
  if (common == nullptr) {
    auto response =
        refused(403, "the client speaks " + joined(client) + ", this server speaks " + joined(protocols.spdy));
    for (const std::string& ours : protocols.spdy) {
      response.error().headers.emplace_back("X-Accepted-Stream-Protocol-Versions", ours);
    }
    return response;
  }
  const auto has = [&request](std::string_view header, std::string_view word) {
    return std::ranges::any_of(net::list_header(request.headers, header),
                               [word](const std::string& item) { return net::same_word(item, word); });
  };
  if (!has("Connection", "Upgrade") || !has("Upgrade", "SPDY/3.1")) {
    return refused(400, "the headers Connection: Upgrade and Upgrade: SPDY/3.1 are missing");
  }
  StreamDialect dialect;
  dialect.protocol = *common;
  return dialect;
}

std::string spdy_handshake(std::string_view protocol) {
  return "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n" +
         std::string(kVersionHeader) + ": " + std::string(protocol) + "\r\n\r\n";
}

}  // namespace spillway::api
