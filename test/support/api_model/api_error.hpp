// What the API server says when it refuses: the Status object of an error answer, as a value.
//
// Pure; any thread. The texts are those of the real server (apimachinery/pkg/api/errors), because clients read them.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "test/support/api_model/resource.hpp"

namespace spillway::test::api_model {

struct ApiError {
  ApiError() = default;
  ApiError(int c, std::string r, std::string text) : code(c), reason(std::move(r)), message(std::move(text)) {}

  int code = 500;
  std::string reason;
  std::string message;
  nlohmann::json details = nlohmann::json::object();
  /// metadata.continue of an expired list; empty without one.
  std::string continue_token;
  /// Seconds; in the details and, as the real server does it, in the header Retry-After.
  std::optional<int> retry_after;
};

template <class T>
using Outcome = std::expected<T, ApiError>;

inline std::unexpected<ApiError> refuse(ApiError error) { return std::unexpected<ApiError>(std::move(error)); }

/// One entry of a 422.
struct FieldError {
  enum class Type { kInvalid, kForbidden, kRequired, kDuplicate };
  Type type = Type::kInvalid;
  std::string field;
  std::string text;
};
/// `Invalid value: "x": text`, with the value as JSON.
FieldError invalid_value(std::string field, const nlohmann::json& value, std::string_view text);
FieldError immutable(std::string field, const nlohmann::json& value);
FieldError forbidden(std::string field, std::string_view text);
FieldError required(std::string field, std::string_view text = {});

ApiError not_found(const Resource& resource, const std::string& name);
ApiError already_exists(const Resource& resource, const std::string& name);
/// 409: `why` follows "Operation cannot be fulfilled on pods "web": ".
ApiError conflict(const Resource& resource, const std::string& name, std::string_view why);
/// 409 of a write whose resourceVersion is not the current one.
ApiError modified(const Resource& resource, const std::string& name);
ApiError refused_by_admission(const Resource& resource, const std::string& name, std::string_view why);
ApiError invalid(const Resource& resource, const std::string& name, const std::vector<FieldError>& errors);
ApiError bad_request(std::string message);
ApiError expired(std::string message);
/// 405.
ApiError not_supported();

/// The Status object, as the body of an answer or the object of an ERROR event.
std::string encode(const ApiError& error);

}  // namespace spillway::test::api_model
