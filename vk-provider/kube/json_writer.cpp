#include "vk-provider/kube/json_writer.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace spillway::kube {
namespace {

/// Length of the well-formed UTF-8 sequence at `at`; 0 if there is none (RFC 3629: no overlong forms, no surrogates).
size_t utf8_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) -> unsigned {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
  };
  const auto continues = [&](size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = first == 0xED ? 0x9F : 0xBF;
    return byte(1) >= low && byte(1) <= high && continues(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = first == 0xF4 ? 0x8F : 0xBF;
    return byte(1) >= low && byte(1) <= high && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

/// Which bytes stand in JSON as they are: printable ASCII without quote and backslash.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (size_t c = ' '; c < 0x7F; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}();

/// How many characters from `at` on stand in JSON as they are.
size_t plain_length(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && kPlain[static_cast<unsigned char>(text[end])]) ++end;
  return end - at;
}

void append_control(std::string& out, char c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  switch (c) {
    case '\n': out += "\\n"; break;
    case '\t': out += "\\t"; break;
    case '\r': out += "\\r"; break;
    default:
      out += "\\u00";
      out += kDigits[(static_cast<unsigned char>(c) >> 4) & 15U];
      out += kDigits[static_cast<unsigned char>(c) & 15U];
  }
}

}  // namespace

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  out_ += bracket;
  need_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  out_ += bracket;
  need_comma_ = true;
  return *this;
}

void JsonWriter::separate() {
  if (need_comma_) out_ += ',';
  need_comma_ = true;
}

void JsonWriter::quote(std::string_view value) {
  out_ += '"';
  size_t at = 0;
  while (at < value.size()) {
    // Nearly all of what is written needs no look at each character.
    const size_t plain = plain_length(value, at);
    out_.append(value, at, plain);
    at += plain;
    if (at == value.size()) break;
    const char c = value[at];
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += c;
      ++at;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      append_control(out_, c);
      ++at;
    } else if (const size_t length = utf8_length(value, at); length > 0) {
      out_.append(value.substr(at, length));
      at += length;
    } else {
      out_ += "\xEF\xBF\xBD";
      ++at;
    }
  }
  out_ += '"';
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  quote(name);
  out_ += ':';
  need_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::string(std::string_view value) {
  separate();
  quote(value);
  return *this;
}

JsonWriter& JsonWriter::number(std::int64_t value) {
  separate();
  out_ += std::to_string(value);
  return *this;
}

JsonWriter& JsonWriter::real(double value) {
  if (!std::isfinite(value)) return null();
  separate();
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out_.append(digits.data(), end.ptr);
  return *this;
}

JsonWriter& JsonWriter::boolean(bool value) {
  separate();
  out_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::null() {
  separate();
  out_ += "null";
  return *this;
}

}  // namespace spillway::kube
