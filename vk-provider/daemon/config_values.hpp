// The small grammars of configuration values: names, labels, addresses, and the nearest known word.
//
// Pure functions over text; any thread. They know nothing of YAML or of files.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "vk-provider/base/duration_text.hpp"

namespace spillway::daemon {

using base::format_duration;
using base::parse_duration;

/// RFC 1123: a label of at most 63 characters of [a-z0-9-], and labels joined by dots, at most 253.
bool is_dns_label(std::string_view text);
bool is_dns_subdomain(std::string_view text);
/// A key of labels and annotations: `name` or `prefix.example/name`.
bool is_qualified_name(std::string_view text);
/// The value of a label: empty or at most 63 characters that begin and end with a letter or digit.
bool is_label_value(std::string_view text);
/// An IPv4 or IPv6 address, without brackets, port or zone.
bool is_ip_address(std::string_view text);

/// The word of `known` that `word` was probably meant to be; empty if none is near.
std::string_view nearest(std::string_view word, std::span<const std::string> known);

/// `a, b, c`
std::string join(std::span<const std::string> words);

}  // namespace spillway::daemon
