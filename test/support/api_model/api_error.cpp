#include "test/support/api_model/api_error.hpp"

#include <set>

#include <fmt/format.h>

namespace spillway::test::api_model {
namespace {

using nlohmann::json;

std::string_view cause_of(FieldError::Type type) {
  switch (type) {
    case FieldError::Type::kInvalid: return "FieldValueInvalid";
    case FieldError::Type::kForbidden: return "FieldValueForbidden";
    case FieldError::Type::kRequired: return "FieldValueRequired";
    case FieldError::Type::kDuplicate: return "FieldValueDuplicate";
  }
  return "";
}

json details_of(const Resource& resource, const std::string& name) {
  json details{{"kind", resource.plural}};
  if (!name.empty()) details["name"] = name;
  if (!resource.group.empty()) details["group"] = resource.group;
  return details;
}

}  // namespace

FieldError invalid_value(std::string field, const json& value, std::string_view text) {
  return {FieldError::Type::kInvalid, std::move(field), fmt::format("Invalid value: {}: {}", value.dump(), text)};
}

FieldError immutable(std::string field, const json& value) {
  return invalid_value(std::move(field), value, "field is immutable");
}

FieldError forbidden(std::string field, std::string_view text) {
  return {FieldError::Type::kForbidden, std::move(field), fmt::format("Forbidden: {}", text)};
}

FieldError required(std::string field, std::string_view text) {
  std::string body = text.empty() ? "Required value" : fmt::format("Required value: {}", text);
  return {FieldError::Type::kRequired, std::move(field), std::move(body)};
}

ApiError not_found(const Resource& resource, const std::string& name) {
  ApiError error(404, "NotFound", fmt::format("{} \"{}\" not found", resource.qualified(), name));
  error.details = details_of(resource, name);
  return error;
}

ApiError already_exists(const Resource& resource, const std::string& name) {
  ApiError error(409, "AlreadyExists", fmt::format("{} \"{}\" already exists", resource.qualified(), name));
  error.details = details_of(resource, name);
  return error;
}

ApiError conflict(const Resource& resource, const std::string& name, std::string_view why) {
  ApiError error(409, "Conflict",
                 fmt::format("Operation cannot be fulfilled on {} \"{}\": {}", resource.qualified(), name, why));
  error.details = details_of(resource, name);
  return error;
}

ApiError modified(const Resource& resource, const std::string& name) {
  return conflict(resource, name,
                  "the object has been modified; please apply your changes to the latest version and try again");
}

ApiError refused_by_admission(const Resource& resource, const std::string& name, std::string_view why) {
  ApiError error(403, "Forbidden", fmt::format("{} \"{}\" is forbidden: {}", resource.qualified(), name, why));
  error.details = details_of(resource, name);
  return error;
}

ApiError invalid(const Resource& resource, const std::string& name, const std::vector<FieldError>& errors) {
  std::string text;
  json causes = json::array();
  std::set<std::string> told;
  for (const FieldError& error : errors) {
    const std::string line = fmt::format("{}: {}", error.field, error.text);
    if (told.insert(line).second) text.append(text.empty() ? "" : ", ").append(line);
    causes.push_back({{"reason", cause_of(error.type)}, {"message", error.text}, {"field", error.field}});
  }
  if (told.size() > 1) text = "[" + text + "]";
  ApiError error(422, "Invalid", fmt::format("{} \"{}\" is invalid: {}", resource.qualified_kind(), name, text));
  error.details = {{"kind", resource.kind}, {"causes", std::move(causes)}};
  if (!name.empty()) error.details["name"] = name;
  if (!resource.group.empty()) error.details["group"] = resource.group;
  return error;
}

ApiError bad_request(std::string message) { return {400, "BadRequest", std::move(message)}; }

ApiError expired(std::string message) { return {410, "Expired", std::move(message)}; }

ApiError not_supported() {
  return {405, "MethodNotAllowed", "the server does not allow this method on the requested resource"};
}

std::string encode(const ApiError& error) {
  json metadata = json::object();
  if (!error.continue_token.empty()) metadata["continue"] = error.continue_token;
  json status{{"kind", "Status"},    {"apiVersion", "v1"},       {"metadata", std::move(metadata)},
              {"status", "Failure"}, {"message", error.message}, {"reason", error.reason},
              {"code", error.code}};
  json details = error.details;
  if (error.retry_after) details["retryAfterSeconds"] = *error.retry_after;
  if (!details.empty()) status["details"] = std::move(details);
  return status.dump();
}

}  // namespace spillway::test::api_model
