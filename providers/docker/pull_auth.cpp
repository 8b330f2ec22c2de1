#include "providers/docker/pull_auth.hpp"

#include <algorithm>
#include <functional>
#include <map>

namespace spillway::providers::docker {
namespace {

constexpr std::string_view kHub = "docker.io";

/// A registry and a path below it, without slashes at its ends.
struct Place {
  std::string_view host;
  std::string_view path;
};

Place split(std::string_view text) {
  const size_t slash = text.find('/');
  Place place;
  place.host = text.substr(0, slash);
  if (slash != std::string_view::npos) place.path = text.substr(slash + 1);
  while (place.path.ends_with('/')) place.path.remove_suffix(1);
  return place;
}

bool is_hub(std::string_view host) {
  return host == kHub || host == "index.docker.io" || host == "registry-1.docker.io";
}

/// A name's first part is a registry if it could not be a path (as in image_reference.cpp).
bool names_registry(std::string_view first) {
  return first == "localhost" || first.find_first_of(".:") != std::string_view::npos ||
         std::any_of(first.begin(), first.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

Place place_of_image(std::string_view repository) {
  Place place = split(repository);
  const bool registry = repository.contains('/') && names_registry(place.host);
  if (!registry) place.path = repository;
  if (!registry || is_hub(place.host)) place.host = kHub;
  return place;
}

Place place_of_auth(std::string_view registry) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (registry.starts_with(scheme)) registry.remove_prefix(scheme.size());
  }
  Place place = split(registry);
  for (const std::string_view version : {"v1", "v2"}) {
    if (place.path == version) {
      place.path = {};
    } else if (place.path.starts_with(version) && place.path.substr(version.size()).starts_with('/')) {
      place.path.remove_prefix(version.size() + 1);
    }
  }
  if (is_hub(place.host)) place.host = kHub;
  return place;
}

/// One part of a host's name against one that may hold `*`.
bool part_matches(std::string_view pattern, std::string_view part) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == part;
  if (!part.starts_with(pattern.substr(0, star))) return false;
  part.remove_prefix(star);
  for (size_t i = 0; i <= part.size(); ++i) {
    if (part_matches(pattern.substr(star + 1), part.substr(i))) return true;
  }
  return false;
}

bool host_matches(std::string_view pattern, std::string_view host) {
  for (;;) {
    const size_t a = pattern.find('.');
    const size_t b = host.find('.');
    if (!part_matches(pattern.substr(0, a), host.substr(0, b))) return false;
    if (a == std::string_view::npos || b == std::string_view::npos) return a == b;
    pattern.remove_prefix(a + 1);
    host.remove_prefix(b + 1);
  }
}

bool path_matches(std::string_view prefix, std::string_view path) {
  return prefix.empty() || (path.starts_with(prefix) && (path.size() == prefix.size() || path[prefix.size()] == '/'));
}

}  // namespace

std::string registry_of(std::string_view repository) { return std::string(place_of_image(repository).host); }

std::vector<model::PullAuth> matching_auth(const std::vector<model::PullAuth>& all, std::string_view repository) {
  const Place image = place_of_image(repository);
  std::multimap<size_t, const model::PullAuth*, std::greater<>> by_path;  // keeps the order of equals
  for (const model::PullAuth& auth : all) {
    const Place place = place_of_auth(auth.registry);
    if (!host_matches(place.host, image.host) || !path_matches(place.path, image.path)) continue;
    by_path.emplace(place.path.size(), &auth);
  }
  std::vector<model::PullAuth> out;
  for (const auto& [length, auth] : by_path) out.push_back(*auth);
  return out;
}

std::string without_secret(std::string text, const base::Secret& password) {
  // What is shorter would be found in innocent words.
  constexpr size_t kShortest = 4;
  const std::string& secret = password.reveal();
  if (secret.size() < kShortest) return text;
  for (size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at)) {
    text.replace(at, secret.size(), "***");
  }
  return text;
}

}  // namespace spillway::providers::docker
