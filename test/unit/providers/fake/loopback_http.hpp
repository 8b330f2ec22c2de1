// HTTP clients without sockets: one goes straight into a fake cloud's routes in virtual time, one repeats one answer.
#pragma once

#include <algorithm>
#include <string>

#include "providers/fake/routes.hpp"
#include "vk-provider/async/timer.hpp"
#include "vk-provider/net/http.hpp"

namespace spillway::providers::fake {

class LoopbackHttp final : public net::HttpClient {
 public:
  LoopbackHttp(FakeCloud& cloud, async::Timers& timers) : cloud_(cloud), timers_(timers) {}

  async::Task<net::HttpResponse> send(net::HttpRequest request, base::Deadline deadline) override {
    using base::ErrorKind;
    if (timers_.now() >= deadline) co_return base::fail(ErrorKind::kDeadline, "too late");
    const bool is_write = request.method != net::Method::kGet;
    WireReply reply = route(cloud_, net::to_string(request.method), request.target, request.body, timers_.now());
    const base::TimePoint answered = timers_.now() + reply.delay;
    if (reply.delay > base::Duration{0}) co_await timers_.sleep_until(std::min(answered, deadline));
    if (answered > deadline)
      co_return base::fail(is_write ? ErrorKind::kUnknownOutcome : ErrorKind::kDeadline, "silence");
    if (reply.lost) co_return base::fail(is_write ? ErrorKind::kUnknownOutcome : ErrorKind::kUnavailable, "cut");
    net::HttpResponse response;
    response.status = reply.status;
    response.body = std::move(reply.body);
    co_return response;
  }
  async::Task<net::HttpStream> open(net::HttpRequest, base::Deadline) override {
    co_return base::fail(base::ErrorKind::kUnsupported, "no streams");
  }

 private:
  FakeCloud& cloud_;
  async::Timers& timers_;
};

class CannedHttp final : public net::HttpClient {
 public:
  CannedHttp(int status, std::string body) : status_(status), body_(std::move(body)) {}

  async::Task<net::HttpResponse> send(net::HttpRequest, base::Deadline) override {
    net::HttpResponse response;
    response.status = status_;
    response.body = body_;
    co_return response;
  }
  async::Task<net::HttpStream> open(net::HttpRequest, base::Deadline) override {
    co_return base::fail(base::ErrorKind::kUnsupported, "no streams");
  }

 private:
  int status_;
  std::string body_;
};

}  // namespace spillway::providers::fake
