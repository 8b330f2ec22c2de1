// HTTP as plain types: requests, answers, and the client seam. No Beast in this header.
//
// HttpClient is owned by main or a factory and outlives its users; reactor thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vk-provider/async/byte_stream.hpp"
#include "vk-provider/async/task.hpp"
#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/secret.hpp"

namespace spillway::net {

enum class Method : std::uint8_t { kGet, kHead, kPost, kPut, kPatch, kDelete };
std::string_view to_string(Method method);

using Header = std::pair<std::string, std::string>;

/// Case-insensitive; the first of that name.
std::optional<std::string_view> find_header(const std::vector<Header>& headers, std::string_view name);
/// Case-insensitive; what all headers of that name list, each with commas between its values.
std::vector<std::string> list_header(const std::vector<Header>& headers, std::string_view name);
/// Case-insensitive.
bool same_word(std::string_view a, std::string_view b);

struct HttpRequest {
  HttpRequest() = default;
  Method method = Method::kGet;
  std::string target;  // path and query, already encoded: /api/v1/nodes?limit=1
  std::vector<Header> headers;
  std::string body;
  std::string content_type;                     // sent only with a body
  base::Secret bearer;                          // sent as Authorization: Bearer; never logged
  std::size_t max_response = 16 * 1024 * 1024;  // bytes; a larger answer is kInvalid, to a write kUnknownOutcome
};

struct HttpResponse {
  HttpResponse() = default;
  int status = 0;
  std::vector<Header> headers;
  std::string body;

  /// Case-insensitive; the first of that name.
  std::optional<std::string_view> header(std::string_view name) const;
  /// Retry-After in seconds, if there is one that is a number.
  std::optional<std::chrono::milliseconds> retry_after() const;
};

/// An answer whose body comes piece by piece. `body` may also be written to after a 101.
struct HttpStream {
  HttpStream() = default;
  HttpResponse head;  // body empty
  async::ByteStreamPtr body;
};

class HttpClient {
 public:
  virtual ~HttpClient() = default;

  /// Any status is a success here. Errors: kUnavailable (nothing was sent, or for a GET/HEAD also later),
  /// kUnknownOutcome (a write was sent and not answered), kDeadline (a read was not answered in time, or the deadline
  /// passed before anything was sent). Never repeats a write.
  virtual async::Task<HttpResponse> send(HttpRequest request, base::Deadline deadline) = 0;

  /// The same up to the end of the headers; the deadline covers only that. A status of 400 or more comes with its body
  /// read into head.body (up to 64 KiB) and no stream.
  virtual async::Task<HttpStream> open(HttpRequest request, base::Deadline deadline) = 0;
};

/// Where and how to connect.
struct Endpoint {
  Endpoint() = default;
  enum class Scheme : std::uint8_t { kHttp, kHttps, kUnix };
  Scheme scheme = Scheme::kHttps;
  std::string host;  // name or address, without brackets
  std::uint16_t port = 443;
  std::string unix_path;    // for kUnix
  std::string server_name;  // SNI and name to verify, if it differs from host

  // TLS. Verification is never off.
  std::string ca_pem;  // empty: the system's CAs
  std::string client_cert_pem;
  base::Secret client_key_pem;

  std::size_t max_connections = 32;  // for send(); open() takes connections of its own
};

/// Makes clients; the seam that tests and the simulator replace.
class HttpClientFactory {
 public:
  virtual ~HttpClientFactory() = default;
  /// kInvalid if certificates or keys cannot be read.
  virtual base::Result<std::unique_ptr<HttpClient>> make(Endpoint endpoint) = 0;
};

}  // namespace spillway::net
