#include "vk-provider/kube/probe_codec.hpp"

#include <algorithm>
#include <charconv>

namespace spillway::kube {
namespace {

using model::Handler;

constexpr int kMaxPort = 65535;

int positive_or(std::string_view json, int otherwise) {
  const int number = decode_int(json);
  return number > 0 ? number : otherwise;
}

void decode_http_get(std::string_view json, Handler& out, Findings& findings) {
  out.path = "/";
  each_member(json, findings, [&](std::string_view key, std::string_view value) {
    if (key == "host") out.host = json_string_or_empty(value);
    if (key == "scheme") out.https = value == "\"HTTPS\"";
    if (key == "path") out.path = json_string(value).value_or("/");
    if (key != "httpHeaders") return;
    each_element(value, findings, [&](size_t, std::string_view header) {
      model::HttpHeader& to = out.headers.emplace_back();
      to.name = json_string_or_empty(json_member(header, "name"));
      to.value = json_string_or_empty(json_member(header, "value"));
    });
  });
  if (out.path.empty()) out.path = "/";
}

}  // namespace

/// A number, or the name of a port; a name that is none may still be a number in quotes, as a kubelet reads it.
int HandlerReader::port(std::string_view json, const std::string& path) const {
  int number = decode_int(json);
  if (const auto name = json_string(json)) {
    const auto named = std::ranges::find(ports_, *name, &model::ContainerPort::name);
    if (named != ports_.end()) return named->port;
    const char* const last = name->data() + name->size();
    const auto [end, error] = std::from_chars(name->data(), last, number);
    if (error != std::errc{} || end != last) {
      findings_.fault(path, "the container has no port called '" + *name + "'; add it to its ports");
      return 0;
    }
  }
  if (number >= 1 && number <= kMaxPort) return number;
  findings_.fault(path, "it must be a port from 1 to 65535, or the name of a port of the container");
  return 0;
}

bool HandlerReader::handler_of(std::string_view key, std::string_view value, const std::string& path,
                               Handler& out) const {
  const auto port_of = [&] { return port(json_member(value, "port"), path + "." + std::string(key) + ".port"); };
  if (!json_is_object(value)) return false;
  if (key == "exec") {
    out.kind = Handler::Kind::kExec;
    out.command = decode_strings(json_member(value, "command"), findings_);
    if (out.command.empty()) findings_.fault(path + ".exec.command", "it is empty");
  } else if (key == "httpGet") {
    out.kind = Handler::Kind::kHttpGet;
    decode_http_get(value, out, findings_);
    out.port = port_of();
  } else if (key == "tcpSocket") {
    out.kind = Handler::Kind::kTcpSocket;
    out.host = json_string_or_empty(json_member(value, "host"));
    out.port = port_of();
  } else if (key == "grpc") {
    out.kind = Handler::Kind::kGrpc;
    out.service = json_string_or_empty(json_member(value, "service"));
    out.port = port_of();
  } else if (key == "sleep") {
    out.kind = Handler::Kind::kSleep;
    out.sleep = decode_seconds(json_member(value, "seconds")).value_or(std::chrono::seconds(0));
  } else {
    return false;
  }
  return true;
}

std::optional<Handler> HandlerReader::handler(std::string_view json, const std::string& path) const {
  Handler out;
  int found = 0;
  each_member(json, findings_, [&](std::string_view key, std::string_view value) {
    if (handler_of(key, value, path, out)) ++found;
  });
  if (found == 1) return out;
  findings_.fault(path, found == 0
                            ? "it says nothing that can be done; set one of exec, httpGet, tcpSocket, grpc, sleep"
                            : "it says several things to do; set one of them");
  return std::nullopt;
}

base::Boxed<model::Probe> HandlerReader::probe(std::string_view json, const std::string& path) const {
  if (!json_is_object(json)) return {};
  auto what = handler(json, path);
  if (!what) return {};
  if (what->kind == Handler::Kind::kSleep) return {};  // the field table refuses it
  model::Probe out;
  out.handler = std::move(*what);
  each_member(json, findings_, [&](std::string_view key, std::string_view value) {
    using std::chrono::seconds;
    if (key == "initialDelaySeconds") out.initial_delay = decode_seconds(value).value_or(seconds(0));
    if (key == "timeoutSeconds") out.timeout = seconds(positive_or(value, 1));
    if (key == "periodSeconds") out.period = seconds(positive_or(value, 10));
    if (key == "successThreshold") out.success_threshold = positive_or(value, 1);
    if (key == "failureThreshold") out.failure_threshold = positive_or(value, 3);
    if (key == "terminationGracePeriodSeconds") out.grace = decode_seconds(value);
  });
  return out;
}

base::Boxed<Handler> HandlerReader::hook(std::string_view json, const std::string& path) const {
  if (!json_is_object(json)) return {};
  auto what = handler(json, path);
  if (!what) return {};
  // The field table refuses these.
  if (what->kind == Handler::Kind::kTcpSocket || what->kind == Handler::Kind::kGrpc) return {};
  return std::move(*what);
}

}  // namespace spillway::kube
