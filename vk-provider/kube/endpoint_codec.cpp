#include "vk-provider/kube/endpoint_codec.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/kube/json_scan.hpp"
#include "vk-provider/kube/json_writer.hpp"
#include "vk-provider/model/labels.hpp"

namespace spillway::kube {
namespace {

using model::Endpoint;
using model::EndpointPort;
using model::EndpointService;
using model::EndpointServicePort;
using model::EndpointSlice;
using model::Protocol;

constexpr std::string_view kIPv6 = "IPv6";

std::unexpected<base::Error> broken(const char* kind) {
  return base::fail(base::ErrorKind::kInvalid, std::string("the API server sent ") + kind + " that cannot be read");
}

Protocol decode_protocol(std::string_view value) {
  if (value == "\"UDP\"") return Protocol::kUdp;
  if (value == "\"SCTP\"") return Protocol::kSctp;
  return Protocol::kTcp;
}

std::string_view name_of(Protocol protocol) {
  switch (protocol) {
    case Protocol::kUdp: return "UDP";
    case Protocol::kSctp: return "SCTP";
    case Protocol::kTcp: break;
  }
  return "TCP";
}

int decode_port(std::string_view value) {
  const auto number = json_int(value).value_or(0);
  return std::in_range<int>(number) ? static_cast<int>(number) : 0;
}

/// Those of an object that is read field by field; missing ones are empty.
struct Parts {
  std::string_view metadata;
  std::string_view spec;
  std::string_view address_type;
  std::string_view endpoints;
  std::string_view ports;
};

std::optional<Parts> parts_of(std::string_view json) {
  Parts parts;
  JsonObject members(json);
  bool any = false;
  while (members.next()) {
    any = true;
    if (members.key() == "metadata") parts.metadata = members.value();
    if (members.key() == "spec") parts.spec = members.value();
    if (members.key() == "addressType") parts.address_type = members.value();
    if (members.key() == "endpoints") parts.endpoints = members.value();
    if (members.key() == "ports") parts.ports = members.value();
  }
  if (!any || members.failed()) return std::nullopt;
  return parts;
}

EndpointServicePort decode_service_port(std::string_view json) {
  EndpointServicePort port;
  JsonObject members(json);
  while (members.next()) {
    const std::string_view key = members.key();
    const std::string_view value = members.value();
    if (key == "name") port.name = json_string_or_empty(value);
    if (key == "protocol") port.protocol = decode_protocol(value);
    if (key == "port") port.port = decode_port(value);
    if (key == "appProtocol") port.app_protocol = json_string_or_empty(value);
    if (key != "targetPort") continue;
    port.target = decode_port(value);
    port.target_name = json_string_or_empty(value);
  }
  if (port.target == 0 && port.target_name.empty()) port.target = port.port;
  return port;
}

/// False if it selects nothing.
bool decode_service_spec(std::string_view spec, EndpointService& out) {
  bool external = false;
  std::string_view families;
  JsonObject members(spec);
  while (members.next()) {
    const std::string_view key = members.key();
    const std::string_view value = members.value();
    if (key == "clusterIP") out.headless = value == "\"None\"";
    if (key == "type") external = value == "\"ExternalName\"";
    if (key == "publishNotReadyAddresses") out.publish_not_ready = json_is_true(value);
    if (key == "ipFamilies") families = value;
    if (key == "selector") {
      JsonObject labels(value);
      while (labels.next()) {
        out.selector.insert_or_assign(std::string(labels.key()), json_string_or_empty(labels.value()));
      }
    }
    if (key == "ports") {
      JsonArray ports(value);
      while (ports.next()) out.ports.push_back(decode_service_port(ports.value()));
    }
  }
  JsonArray list(families);
  while (list.next()) (json_string_or_empty(list.value()) == kIPv6 ? out.ipv6 : out.ipv4) = true;
  if (!out.ipv6) out.ipv4 = true;
  return !external && !out.selector.empty() && !out.ports.empty();
}

void decode_conditions(std::string_view json, Endpoint& out) {
  JsonObject members(json);
  while (members.next()) {
    if (members.key() == "ready") out.ready = json_is_true(members.value());
    if (members.key() == "serving") out.serving = json_is_true(members.value());
    if (members.key() == "terminating") out.terminating = json_is_true(members.value());
  }
}

Endpoint decode_endpoint(std::string_view json) {
  Endpoint out;
  JsonObject members(json);
  while (members.next()) {
    const std::string_view key = members.key();
    const std::string_view value = members.value();
    if (key == "addresses") {
      // More than one was not written by us: with commas between it equals nothing of ours.
      JsonArray list(value);
      while (list.next()) out.address += (out.address.empty() ? "" : ",") + json_string_or_empty(list.value());
    } else if (key == "conditions") {
      decode_conditions(value, out);
    } else if (key == "hostname") {
      out.hostname = json_string_or_empty(value);
    } else if (key == "nodeName") {
      out.node = json_string_or_empty(value);
    } else if (key == "zone") {
      out.zone = json_string_or_empty(value);
    } else if (key == "targetRef") {
      out.pod_name = json_string_or_empty(json_member(value, "name"));
      out.pod_uid = base::PodUid(json_string_or_empty(json_member(value, "uid")));
    }
  }
  return out;
}

EndpointPort decode_endpoint_port(std::string_view json) {
  EndpointPort port;
  JsonObject members(json);
  while (members.next()) {
    if (members.key() == "name") port.name = json_string_or_empty(members.value());
    if (members.key() == "protocol") port.protocol = decode_protocol(members.value());
    if (members.key() == "port") port.port = decode_port(members.value());
    if (members.key() == "appProtocol") port.app_protocol = json_string_or_empty(members.value());
  }
  return port;
}

void decode_slice_metadata(std::string_view metadata, EndpointSlice& out) {
  JsonObject members(metadata);
  while (members.next()) {
    const std::string_view key = members.key();
    const std::string_view value = members.value();
    if (key == "name") out.name = json_string_or_empty(value);
    if (key == "namespace") out.ns = json_string_or_empty(value);
    if (key == "uid") out.uid = json_string_or_empty(value);
    if (key == "resourceVersion") out.resource_version = json_string_or_empty(value);
    if (key == "labels") {
      out.service = json_string_or_empty(json_member(value, model::kLabelServiceName));
      out.managed_by = json_string_or_empty(json_member(value, model::kLabelEndpointManager));
      out.installation = json_string_or_empty(json_member(value, model::kLabelInstallation));
      out.headless = !json_member(value, model::kLabelHeadless).empty();
    }
    if (key == "ownerReferences") {
      JsonArray owners(value);
      while (owners.next()) {
        if (json_string_or_empty(json_member(owners.value(), "kind")) != "Service") continue;
        out.service_uid = json_string_or_empty(json_member(owners.value(), "uid"));
      }
    }
  }
}

void write_labels(JsonWriter& out, const EndpointSlice& slice, bool patch) {
  out.key("labels").open_object();
  out.field(model::kLabelServiceName, slice.service);
  out.field(model::kLabelEndpointManager, slice.managed_by);
  out.field(model::kLabelInstallation, slice.installation);
  if (slice.headless) {
    out.field(model::kLabelHeadless, "");
  } else if (patch) {
    out.field_null(model::kLabelHeadless);
  }
  out.close_object();
  // Without blockOwnerDeletion: that would need a right to the Service's finalizers.
  out.key("ownerReferences").open_array().open_object();
  out.field("apiVersion", "v1").field("kind", "Service").field("name", slice.service).field("uid", slice.service_uid);
  out.close_object().close_array();
}

void write_endpoint(JsonWriter& out, const Endpoint& endpoint, const std::string& ns) {
  out.open_object();
  out.key("addresses").open_array().string(endpoint.address).close_array();
  out.key("conditions").open_object();
  out.field_bool("ready", endpoint.ready).field_bool("serving", endpoint.serving);
  out.field_bool("terminating", endpoint.terminating).close_object();
  out.field_if("hostname", endpoint.hostname).field_if("nodeName", endpoint.node).field_if("zone", endpoint.zone);
  out.key("targetRef").open_object().field("kind", "Pod").field("namespace", ns);
  out.field("name", endpoint.pod_name).field("uid", endpoint.pod_uid.str()).close_object();
  out.close_object();
}

void write_content(JsonWriter& out, const EndpointSlice& slice) {
  out.key("endpoints").open_array();
  for (const Endpoint& endpoint : slice.endpoints) write_endpoint(out, endpoint, slice.ns);
  out.close_array();
  out.key("ports").open_array();
  for (const EndpointPort& port : slice.ports) {
    out.open_object().field("name", port.name).field("protocol", name_of(port.protocol));
    out.field_number("port", port.port).field_if("appProtocol", port.app_protocol).close_object();
  }
  out.close_array();
}

}  // namespace

base::Result<std::optional<EndpointService>> decode_endpoint_service(std::string_view json) {
  const auto parts = parts_of(json);
  if (!parts) return broken("a Service");
  EndpointService out;
  out.ns = json_string_or_empty(json_member(parts->metadata, "namespace"));
  out.name = json_string_or_empty(json_member(parts->metadata, "name"));
  out.uid = json_string_or_empty(json_member(parts->metadata, "uid"));
  if (out.ns.empty() || out.name.empty() || out.uid.empty()) return broken("a Service");
  if (!decode_service_spec(parts->spec, out)) return std::nullopt;
  return out;
}

base::Result<EndpointSlice> decode_endpoint_slice(std::string_view json) {
  const auto parts = parts_of(json);
  if (!parts) return broken("an EndpointSlice");
  EndpointSlice out;
  decode_slice_metadata(parts->metadata, out);
  if (out.ns.empty() || out.name.empty() || out.uid.empty() || out.resource_version.empty()) {
    return broken("an EndpointSlice");
  }
  out.ipv6 = json_string_or_empty(parts->address_type) == kIPv6;
  JsonArray endpoints(parts->endpoints);
  while (endpoints.next()) out.endpoints.push_back(decode_endpoint(endpoints.value()));
  JsonArray ports(parts->ports);
  while (ports.next()) out.ports.push_back(decode_endpoint_port(ports.value()));
  if (endpoints.failed() || ports.failed()) return broken("an EndpointSlice");
  return out;
}

std::string decode_label_text(std::string_view json) {
  std::string out;
  // Neither keys nor values can hold a comma.
  JsonObject labels(json_member(json, "metadata", "labels"));
  while (labels.next()) {
    if (out.empty()) out += ',';
    out.append(labels.key()).append("=").append(json_string_or_empty(labels.value())).append(",");
  }
  return out;
}

std::string encode_endpoint_slice(const EndpointSlice& slice) {
  JsonWriter out;
  out.open_object().field("apiVersion", "discovery.k8s.io/v1").field("kind", "EndpointSlice");
  out.key("metadata").open_object().field("name", slice.name).field("namespace", slice.ns);
  write_labels(out, slice, false);
  out.close_object().field("addressType", slice.ipv6 ? kIPv6 : "IPv4");
  write_content(out, slice);
  out.close_object();
  return out.take();
}

std::string encode_endpoint_slice_patch(const EndpointSlice& slice) {
  JsonWriter out;
  out.open_object().key("metadata").open_object();
  out.field("uid", slice.uid).field("resourceVersion", slice.resource_version);
  write_labels(out, slice, true);
  out.close_object();
  write_content(out, slice);
  out.close_object();
  return out.take();
}

std::string encode_endpoint_slice_removal(const EndpointSlice& slice) {
  JsonWriter out;
  out.open_object().field("kind", "DeleteOptions").field("apiVersion", "v1");
  out.key("preconditions").open_object().field("uid", slice.uid);
  out.field("resourceVersion", slice.resource_version).close_object().close_object();
  return out.take();
}

}  // namespace spillway::kube
