// The fake cloud's HTTP interface without the HTTP: method, target and body in, status and body out.
//
//   GET    /v1/offers                                     POST   /v1/faults           one rule or a list
//   POST   /v1/instances                                  DELETE /v1/faults
//   GET    /v1/instances?tag_prefix=                      POST   /v1/foreign          {"tag": ...}
//   GET    /v1/instances/{id}                             POST   /v1/instances/{id}/kill
//   DELETE /v1/instances/{id}?grace=SECONDS               GET    /v1/invoice
//   POST   /v1/instances/{id}/containers/{name}/{start|stop|restart}   GET /v1/audit, /v1/healthz
//   GET    /v1/instances/{id}/containers/{name}/log?previous=BOOL&from=INDEX, or &tail=LINES
//   GET    /v1/samples
//
// Pure. The right column is for tests; faults do not touch it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "providers/fake/fake_cloud.hpp"

namespace spillway::providers::fake {

struct WireReply {
  WireReply() = default;
  int status = 200;
  std::string body;
  std::optional<std::chrono::milliseconds> retry_after;
  base::Duration delay{0};  // to wait before it is sent
  bool lost = false;        // not to be sent at all
};

WireReply route(FakeCloud& cloud, std::string_view method, std::string_view target, std::string_view body,
                base::TimePoint now);

}  // namespace spillway::providers::fake
