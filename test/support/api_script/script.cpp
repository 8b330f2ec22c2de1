#include "test/support/api_script/script.hpp"

#include <algorithm>
#include <optional>
#include <sstream>

#include <fmt/format.h>

namespace spillway::test::api_script {
namespace {

using base::ErrorKind;
using net::Method;

constexpr const char* kMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
constexpr const char* kMetadataList =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

std::optional<Method> method_of(std::string_view verb) {
  for (const Method method : {Method::kGet, Method::kPost, Method::kPut, Method::kPatch, Method::kDelete}) {
    if (verb == net::to_string(method)) return method;
  }
  return std::nullopt;
}

/// False for a word that means nothing.
bool take_word(std::string_view word, kube::KubeRequest& request) {
  using Pair = std::pair<std::string_view, const char*>;
  static constexpr std::array kTypes = {Pair{"strategic", "application/strategic-merge-patch+json"},
                                        Pair{"merge", "application/merge-patch+json"},
                                        Pair{"apply", "application/apply-patch+yaml"}, Pair{"text", "text/plain"}};
  if (word == "metadata" || word == "metadata-list") {
    request.accept = word == "metadata" ? kMetadata : kMetadataList;
    return true;
  }
  const auto it = std::ranges::find(kTypes, word, &Pair::first);
  if (it == kTypes.end()) return false;
  request.content_type = it->second;
  return true;
}

/// [words] target
bool take_target(std::istringstream& words, kube::KubeRequest& request) {
  request.content_type = "application/json";
  std::string word;
  while (words >> word) {
    if (word.starts_with('/')) {
      request.target = word;
      return !(words >> word);
    }
    if (!take_word(word, request)) return false;
  }
  return false;
}

std::optional<Step> first_line(const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  words >> verb;
  Step step;
  step.line = line;
  bool good = true;
  if (const auto method = method_of(verb)) {
    step.request.method = *method;
    good = take_target(words, step.request);
  } else if (verb == "WATCH") {
    step.kind = Step::Kind::kWatch;
    good = static_cast<bool>(words >> step.watch) && take_target(words, step.request);
  } else if (verb == "READ") {
    step.kind = Step::Kind::kRead;
    std::string until;
    good = static_cast<bool>(words >> step.watch >> until) && until == "until";
    std::getline(words >> std::ws, step.until);
    good = good && !step.until.empty();
  } else if (verb == "CLOSE") {
    step.kind = Step::Kind::kClose;
    good = static_cast<bool>(words >> step.watch);
  } else if (verb == "EXPIRE") {
    step.kind = Step::Kind::kExpire;
    good = take_target(words, step.request);
  } else {
    good = false;
  }
  return good ? std::optional(std::move(step)) : std::nullopt;
}

}  // namespace

base::Result<std::vector<Step>> parse(std::string_view text) {
  std::vector<Step> steps;
  std::string title;
  bool open = false;  // a step to which the next line may belong
  int number = 0;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty()) {
      open = false;
    } else if (line.starts_with('#')) {
      // The last comment before a step is its title.
      title = line.substr(std::min(line.find_first_not_of("# "), line.size()));
    } else if (!open) {
      auto step = first_line(line);
      if (!step) return base::fail(ErrorKind::kInvalid, fmt::format("line {}: not a step: {}", number, line));
      step->title = std::exchange(title, "");
      steps.push_back(std::move(*step));
      open = true;
    } else if (line.starts_with("save ")) {
      std::istringstream words(line.substr(5));
      std::string name;
      std::string pointer;
      if (!(words >> name >> pointer)) {
        return base::fail(ErrorKind::kInvalid, fmt::format("line {}: save NAME POINTER", number));
      }
      steps.back().saves.emplace_back(name, pointer);
    } else {
      steps.back().request.body += line;
    }
  }
  return steps;
}

std::string fill_in(std::string text, const std::map<std::string, std::string>& values) {
  for (const auto& [name, value] : values) {
    const std::string place = "${" + name + "}";
    for (size_t at = text.find(place); at != std::string::npos; at = text.find(place, at + value.size())) {
      text.replace(at, place.size(), value);
    }
  }
  return text;
}

}  // namespace spillway::test::api_script
