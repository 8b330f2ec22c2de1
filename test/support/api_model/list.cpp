#include "test/support/api_model/list.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "test/support/api_model/selector.hpp"
#include "vk-provider/net/digest.hpp"

namespace spillway::test::api_model {
namespace {

using nlohmann::json;

constexpr const char* kTokenTooOld =
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list.";

/// Where a page goes on; version -1: from what there is now.
struct Token {
  std::int64_t version = 0;
  std::string start;  // the first key that may come
};

std::string encode(const Token& token) {
  const json out{{"v", "meta.k8s.io/v1"}, {"rv", token.version}, {"start", token.start}};
  std::string text = net::base64_encode(out.dump());
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  while (text.ends_with('=')) text.pop_back();
  return text;
}

Outcome<Token> decode(std::string text) {
  for (char& c : text) c = c == '-' ? '+' : c == '_' ? '/' : c;
  while (text.size() % 4 != 0) text += '=';
  const auto bytes = net::base64_decode(text);
  const json value = bytes ? json::parse(*bytes, nullptr, false) : json();
  if (!value.is_object() || value.value("v", "") != "meta.k8s.io/v1") {
    return refuse(
        bad_request("invalid continue token: continue key is not valid: illegal base64 data at input byte 0"));
  }
  return Token{value.value("rv", std::int64_t{0}), value.value("start", "")};
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

ApiError version_unknown(std::uint64_t wanted, std::uint64_t current) {
  ApiError error(504, "Timeout", fmt::format("Timeout: Too large resource version: {}, current: {}", wanted, current));
  error.details = {{"causes", {{{"reason", "ResourceVersionTooLarge"}, {"message", "Too large resource version"}}}}};
  error.retry_after = 1;
  return error;
}

struct Page {
  std::string items;
  std::string last_key;
  size_t taken = 0;
  size_t left = 0;
};

Page read_page(const std::map<std::string, ObjectPtr>& objects, const Target& target, const std::string& start,
               const Selector& selector, bool metadata_only) {
  const size_t limit = number(target.parameter("limit")).value_or(0);
  const std::string prefix = target.ns.empty() ? "" : target.ns + "/";
  Page page;
  for (auto it = objects.lower_bound(std::max(start, prefix)); it != objects.end(); ++it) {
    if (!it->first.starts_with(prefix)) break;
    if (!selector.matches(*it->second)) continue;
    if (limit != 0 && page.taken == limit) {
      ++page.left;
      continue;
    }
    if (page.taken++ > 0) page.items += ',';
    page.items += metadata_only ? it->second->metadata_text() : it->second->item_text();
    page.last_key = it->first;
  }
  return page;
}

std::string encode_list(const Target& target, const Page& page, const Token& at, const Selector& selector,
                        bool metadata_only) {
  json metadata{{"resourceVersion", std::to_string(at.version)}};
  if (page.left > 0) {
    metadata["continue"] = encode({at.version, page.last_key + '\0'});
    if (selector.empty()) metadata["remainingItemCount"] = page.left;
  }
  const std::string kind = metadata_only ? "PartialObjectMetadata" : std::string(target.resource->kind);
  const std::string_view version = metadata_only ? "meta.k8s.io/v1" : target.resource->api_version;
  return fmt::format(R"({{"kind":"{}List","apiVersion":"{}","metadata":{},"items":[{}]}})", kind, version,
                     metadata.dump(), page.items);
}

}  // namespace

Outcome<void> check_list_options(const Target& target, bool watch) {
  const std::string_view match = target.parameter("resourceVersionMatch");
  const std::string_view initial = target.parameter("sendInitialEvents");
  std::vector<FieldError> errors;
  if (!watch) {
    if (!match.empty() && target.parameter("resourceVersion").empty()) {
      errors.push_back(
          forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"));
    }
    if (!initial.empty()) {
      errors.push_back(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
  } else if (!initial.empty() && match != "NotOlderThan") {
    errors.push_back(
        forbidden("resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
  } else if (initial.empty() && !match.empty()) {
    errors.push_back(forbidden("resourceVersionMatch",
                               "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"));
  }
  if (errors.empty()) return {};
  Resource options;
  options.kind = "ListOptions";
  options.group = "meta.k8s.io";
  return refuse(invalid(options, "", errors));
}

Outcome<std::string> list(const Store& store, const Target& target, bool metadata_only) {
  if (auto fits = check_list_options(target, false); !fits) return refuse(std::move(fits.error()));
  auto selector = Selector::parse(target);
  if (!selector) return refuse(std::move(selector.error()));

  const auto current = static_cast<std::int64_t>(store.version());
  Token at{current, {}};
  if (const std::string_view wanted = target.parameter("resourceVersion"); !wanted.empty()) {
    const auto version = number(wanted);
    if (!version) {
      return refuse(bad_request(
          fmt::format("invalid resource version: resourceVersion: Invalid value: \"{}\": strconv.ParseUint: parsing "
                      "\"{}\": invalid syntax",
                      wanted, wanted)));
    }
    if (*version > store.version()) return refuse(version_unknown(*version, store.version()));
  }
  if (const std::string_view token = target.parameter("continue"); !token.empty()) {
    auto decoded = decode(std::string(token));
    if (!decoded) return refuse(std::move(decoded.error()));
    at = *decoded;
  }
  if (at.version < 0) at.version = current;
  const auto version = static_cast<std::uint64_t>(at.version);
  if (version < store.oldest_version(*target.resource)) {
    ApiError error = expired(kTokenTooOld);
    error.continue_token = encode({-1, at.start});
    return refuse(std::move(error));
  }
  const Page page =
      version == store.version()
          ? read_page(store.all(*target.resource), target, at.start, *selector, metadata_only)
          : read_page(store.all_at(*target.resource, version), target, at.start, *selector, metadata_only);
  return encode_list(target, page, at, *selector, metadata_only);
}

}  // namespace spillway::test::api_model
