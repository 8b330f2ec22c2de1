#include "providers/fake/routes.hpp"

#include <charconv>
#include <vector>

#include "providers/fake/codec.hpp"

namespace spillway::providers::fake {
namespace {

using base::ErrorKind;

struct Request {
  std::string_view method;
  std::vector<std::string> path;  // segments after /v1, decoded
  std::string_view query;
  std::string_view body;
};

int status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalid: return 400;
    case ErrorKind::kUnauthenticated: return 401;
    case ErrorKind::kPermission: return 403;
    case ErrorKind::kNotFound: return 404;
    case ErrorKind::kConflict: return 409;
    case ErrorKind::kGone: return 410;
    case ErrorKind::kNoCapacity: return 409;
    case ErrorKind::kQuota: return 403;
    case ErrorKind::kRateLimited: return 429;
    case ErrorKind::kUnavailable: return 503;
    case ErrorKind::kDeadline: return 504;
    case ErrorKind::kImage: return 422;
    case ErrorKind::kUnsupported: return 501;
    case ErrorKind::kUnknownOutcome:
    case ErrorKind::kCancelled:
    case ErrorKind::kInternal: return 500;
  }
  return 500;
}

WireReply ok(int status, std::string body) {
  WireReply reply;
  reply.status = status;
  reply.body = std::move(body);
  return reply;
}

WireReply failure(const base::Error& error) {
  WireReply reply = ok(status_of(error.kind), encode_error(error));
  reply.retry_after = error.retry_after;
  return reply;
}

template <class T, class Encode>
WireReply to_wire(const Reply<T>& reply, int status, Encode encode) {
  WireReply wire = reply.result ? ok(status, encode(reply.result)) : failure(reply.result.error());
  wire.delay = reply.delay;
  wire.lost = reply.lost;
  return wire;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ptr == text.data() + i + 3) {
      out += static_cast<char>(value);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('=')) {
      return percent_decoded(pair.substr(name.size() + 1));
    }
  }
  return {};
}

WireReply no_such_route(const Request& r) {
  std::string path;
  for (const std::string& segment : r.path) path += "/" + segment;
  // Not kNotFound: that would say that an instance is gone.
  WireReply reply = failure(
      base::Error(ErrorKind::kUnsupported, "the fake cloud does not know " + std::string(r.method) + " /v1" + path));
  reply.status = 404;
  return reply;
}

base::Result<std::chrono::seconds> grace_of(const Request& r) {
  const std::string grace = query_value(r.query, "grace");
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(grace.data(), grace.data() + grace.size(), seconds);
  if (!grace.empty() && (error != std::errc{} || end != grace.data() + grace.size() || seconds < 0)) {
    return base::fail(ErrorKind::kInvalid, "grace: found \"" + grace + "\", expected seconds");
  }
  return std::chrono::seconds(seconds);
}

WireReply terminate(FakeCloud& cloud, const Request& r, base::TimePoint now) {
  const auto grace = grace_of(r);
  if (!grace) return failure(grace.error());
  return to_wire(cloud.terminate(r.path[1], *grace, now), 202, [](const auto&) { return "{}"; });
}

WireReply control(FakeCloud& cloud, const Request& r, base::TimePoint now) {
  using provider::ContainerAction;
  const std::string& word = r.path[4];
  ContainerAction action = ContainerAction::kStart;
  if (word == "stop") {
    action = ContainerAction::kStop;
  } else if (word == "restart") {
    action = ContainerAction::kRestart;
  } else if (word != "start") {
    return no_such_route(r);
  }
  const auto grace = grace_of(r);
  if (!grace) return failure(grace.error());
  return to_wire(cloud.control(r.path[1], r.path[3], action, *grace, now), 200, [](const auto&) { return "{}"; });
}

/// A whole number of the query; `otherwise` if it is not there. Empty if it is none.
std::optional<std::uint64_t> number(std::string_view query, std::string_view name, std::uint64_t otherwise) {
  const std::string text = query_value(query, name);
  if (text.empty()) return otherwise;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

WireReply read_log(FakeCloud& cloud, const Request& r, base::TimePoint now) {
  LogRequest request;
  request.container = r.path[3];
  request.previous = query_value(r.query, "previous") == "true";
  const auto from = number(r.query, "from", 0);
  if (!from) return failure(base::Error(ErrorKind::kInvalid, "from: expected the index of a line"));
  request.from = *from;
  if (!query_value(r.query, "tail").empty()) {
    request.tail = number(r.query, "tail", 0);
    if (!request.tail) return failure(base::Error(ErrorKind::kInvalid, "tail: expected a number of lines"));
  }
  return to_wire(cloud.read_log(r.path[1], request, now), 200, [](const auto& page) { return encode_log_page(*page); });
}

WireReply kill(FakeCloud& cloud, const Request& r, base::TimePoint now) {
  const auto order = decode_kill(r.body);
  if (!order) return failure(order.error());
  const auto done = cloud.kill(r.path[1], *order, now);
  return done ? ok(200, "{}") : failure(done.error());
}

WireReply create(FakeCloud& cloud, const Request& r, base::TimePoint now) {
  auto request = decode_create(r.body);
  if (!request) return failure(request.error());
  return to_wire(cloud.create(std::move(*request), now), 201, [](const auto& i) { return encode_instance(*i); });
}

WireReply instances(FakeCloud& cloud, const Request& r, base::TimePoint now) {
  const size_t depth = r.path.size();
  if (depth == 1 && r.method == "POST") return create(cloud, r, now);
  if (depth == 1 && r.method == "GET") {
    return to_wire(cloud.list_owned(query_value(r.query, "tag_prefix"), now), 200,
                   [](const auto& l) { return encode_list(*l); });
  }
  if (depth == 2 && r.method == "GET") {
    return to_wire(cloud.get(r.path[1], now), 200, [](const auto& i) { return encode_instance(*i); });
  }
  if (depth == 2 && r.method == "DELETE") return terminate(cloud, r, now);
  if (depth == 3 && r.method == "POST" && r.path[2] == "kill") return kill(cloud, r, now);
  if (depth == 5 && r.method == "POST" && r.path[2] == "containers") return control(cloud, r, now);
  if (depth == 5 && r.method == "GET" && r.path[2] == "containers" && r.path[4] == "log") {
    return read_log(cloud, r, now);
  }
  return no_such_route(r);
}

WireReply faults(FakeCloud& cloud, const Request& r, base::TimePoint now) {
  if (r.method == "DELETE") {
    cloud.clear_faults();
    return ok(200, "{}");
  }
  if (r.method != "POST") return no_such_route(r);
  auto rules = decode_faults(r.body);
  if (!rules) return failure(rules.error());
  std::vector<std::uint64_t> numbers;
  for (FaultRule& rule : *rules) {
    const auto number = cloud.add_fault(std::move(rule), now);
    if (!number) return failure(number.error());
    numbers.push_back(*number);
  }
  return ok(201, encode_fault_numbers(numbers));
}

WireReply foreign(FakeCloud& cloud, const Request& r, base::TimePoint now) {
  auto tag = decode_foreign(r.body);
  return tag ? ok(201, encode_id(cloud.add_foreign(std::move(*tag), now))) : failure(tag.error());
}

std::vector<std::string> segments(std::string_view path) {
  std::vector<std::string> out;
  while (!path.empty()) {
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(segment.size() + 1, path.size()));
    out.push_back(percent_decoded(segment));
  }
  return out;
}

}  // namespace

WireReply route(FakeCloud& cloud, std::string_view method, std::string_view target, std::string_view body,
                base::TimePoint now) {
  constexpr std::string_view kRoot = "/v1/";
  Request r;
  r.method = method;
  r.body = body;
  const size_t mark = target.find('?');
  if (mark != std::string_view::npos) r.query = target.substr(mark + 1);
  std::string_view path = target.substr(0, mark);
  if (!path.starts_with(kRoot)) return no_such_route(r);
  r.path = segments(path.substr(kRoot.size()));
  if (r.path.empty()) return no_such_route(r);

  const std::string& noun = r.path[0];
  if (noun == "instances") return instances(cloud, r, now);
  if (r.path.size() > 1) return no_such_route(r);
  if (noun == "faults") return faults(cloud, r, now);
  if (noun == "foreign" && method == "POST") return foreign(cloud, r, now);
  if (method != "GET") return no_such_route(r);
  if (noun == "offers") return to_wire(cloud.list_offers(now), 200, [](const auto& o) { return encode_offers(*o); });
  if (noun == "samples") return to_wire(cloud.samples(now), 200, [](const auto& s) { return encode_samples(*s); });
  if (noun == "invoice") return ok(200, encode_invoice(cloud.invoice(now)));
  if (noun == "audit") return ok(200, encode_audit(cloud.audit(now)));
  if (noun == "healthz") return ok(200, "{}");
  return no_such_route(r);
}

}  // namespace spillway::providers::fake
