#include "vk-provider/net/request_reader.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>

using namespace spillway;
using net::RequestReader;

namespace {

constexpr size_t kMaxHeader = 128 * 1024;

/// Fed as a connection does it, in pieces of so many bytes; what went wrong, and how much was ever kept of the input.
struct Reading {
  boost::system::error_code ec;
  size_t kept = 0;
};
Reading feed(RequestReader& reader, std::string_view bytes, size_t piece) {
  Reading out;
  boost::beast::flat_buffer input;
  while (!bytes.empty() && !reader.done() && !out.ec) {
    const std::string_view part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    boost::asio::buffer_copy(input.prepare(part.size()), boost::asio::buffer(part.data(), part.size()));
    input.commit(part.size());
    out.ec = reader.feed(input);
    out.kept = std::max(out.kept, input.size());
  }
  return out;
}

}  // namespace

TEST_CASE("a request is read in whatever pieces it comes, also one in chunks with all that may stand beside the data") {
  const std::string request =
      "POST /run?cmd=ls HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5;name=value\r\nhello\r\n0\r\nTrailer: t\r\n\r\n";
  for (const size_t piece : {request.size(), size_t{1}, size_t{7}}) {
    RequestReader reader(1024, 1024);
    CHECK_FALSE(feed(reader, request, piece).ec);
    REQUIRE(reader.done());
    const net::HttpServerRequest read = reader.take();
    CHECK(read.method == "POST");
    CHECK(read.path() == "/run");
    CHECK(read.body == "hello");
  }
}

TEST_CASE("an empty body in chunks may come byte by byte") {
  RequestReader reader(1024, 1024);
  CHECK_FALSE(feed(reader, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 1).ec);
  CHECK(reader.done());
}

TEST_CASE("a header of more than 64 KiB is refused, also where more is allowed") {
  // Beast throws at it; nobody may end the process with that.
  const std::string big(70'000, 'x');
  for (const std::string& request :
       {"GET / HTTP/1.1\r\nName: " + big + "\r\n\r\n", "GET / HTTP/1.1\r\n" + big + ": value\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nName: " + big + "\r\n\r\n"}) {
    RequestReader reader(kMaxHeader, 1024);
    const Reading reading = feed(reader, request, 16 * 1024);
    CHECK(RequestReader::refusal(reading.ec) == 431);
  }
}

TEST_CASE("what stands beside the data of a body in chunks is not collected without end") {
  const std::string head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string trailers = "0\r\n";
  while (trailers.size() < 10 * kMaxHeader) trailers += "Trailer: t\r\n";
  for (const std::string& body : {trailers, "1;name=" + std::string(10 * kMaxHeader, 'x')}) {
    RequestReader reader(kMaxHeader, 1024);
    const Reading reading = feed(reader, head + body, 16 * 1024);
    CHECK(RequestReader::refusal(reading.ec) == 431);
    CHECK(reading.kept <= kMaxHeader + 16 * 1024);
  }
}
