#include "vk-provider/kube/json_scan.hpp"

#include <charconv>
#include <cstring>

namespace spillway::kube {
namespace {

constexpr size_t kNowhere = std::string_view::npos;

size_t skip_space(std::string_view text, size_t at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r')) ++at;
  return at;
}

/// `at` is behind the opening quote; the position of the closing one.
size_t find_quote(std::string_view text, size_t at) {
  for (;;) {
    const void* const found = at < text.size() ? std::memchr(text.data() + at, '"', text.size() - at) : nullptr;
    if (found == nullptr) return kNowhere;
    const auto quote = static_cast<size_t>(static_cast<const char*>(found) - text.data());
    size_t backslashes = 0;
    while (quote - backslashes > at && text[quote - backslashes - 1] == '\\') ++backslashes;
    if (backslashes % 2 == 0) return quote;
    at = quote + 1;
  }
}

/// `at` is at an opening bracket; the position behind the one that closes it.
size_t skip_nested(std::string_view text, size_t at) {
  size_t depth = 0;
  while (at < text.size()) {
    switch (text[at]) {
      case '"':
        at = find_quote(text, at + 1);
        if (at == kNowhere) return kNowhere;
        break;
      case '{':
      case '[': ++depth; break;
      case '}':
      case ']':
        if (--depth == 0) return at + 1;
        break;
      default: break;
    }
    ++at;
  }
  return kNowhere;
}

/// The position behind the value that begins at `at`.
size_t skip_value(std::string_view text, size_t at) {
  if (at >= text.size()) return kNowhere;
  const char first = text[at];
  if (first == '{' || first == '[') return skip_nested(text, at);
  if (first == '"') {
    const size_t quote = find_quote(text, at + 1);
    return quote == kNowhere ? kNowhere : quote + 1;
  }
  const size_t begin = at;
  while (at < text.size() && std::strchr(",]} \n\t\r", text[at]) == nullptr) ++at;
  return at == begin ? kNowhere : at;
}

void append_utf8(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0U | (code >> 6));
    out += static_cast<char>(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0U | (code >> 12));
    out += static_cast<char>(0x80U | ((code >> 6) & 0x3FU));
    out += static_cast<char>(0x80U | (code & 0x3FU));
  } else {
    out += static_cast<char>(0xF0U | (code >> 18));
    out += static_cast<char>(0x80U | ((code >> 12) & 0x3FU));
    out += static_cast<char>(0x80U | ((code >> 6) & 0x3FU));
    out += static_cast<char>(0x80U | (code & 0x3FU));
  }
}

std::optional<std::uint32_t> hex4(std::string_view raw, size_t at) {
  if (at + 4 > raw.size()) return std::nullopt;
  std::uint32_t code = 0;
  const auto [end, error] = std::from_chars(raw.data() + at, raw.data() + at + 4, code, 16);
  if (error != std::errc{} || end != raw.data() + at + 4) return std::nullopt;
  return code;
}

/// `at` is behind `\u`; appends the character and moves behind it.
bool append_unicode(std::string& out, std::string_view raw, size_t& at) {
  auto code = hex4(raw, at);
  if (!code) return false;
  at += 4;
  const auto is_high = [](std::uint32_t c) { return c >= 0xD800 && c < 0xDC00; };
  const auto is_low = [](std::uint32_t c) { return c >= 0xDC00 && c < 0xE000; };
  if (is_high(*code)) {
    if (raw.substr(at, 2) != "\\u") return false;
    const auto low = hex4(raw, at + 2);
    if (!low || !is_low(*low)) return false;
    at += 6;
    code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
  } else if (is_low(*code)) {
    return false;
  }
  append_utf8(out, *code);
  return true;
}

bool append_escape(std::string& out, std::string_view raw, size_t& at) {
  if (at >= raw.size()) return false;
  const char c = raw[at++];
  switch (c) {
    case '"':
    case '\\':
    case '/': out += c; return true;
    case 'b': out += '\b'; return true;
    case 'f': out += '\f'; return true;
    case 'n': out += '\n'; return true;
    case 'r': out += '\r'; return true;
    case 't': out += '\t'; return true;
    case 'u': return append_unicode(out, raw, at);
    default: return false;
  }
}

}  // namespace

JsonObject::JsonObject(std::string_view text) : text_(text) {
  at_ = skip_space(text_, 0);
  if (at_ < text_.size() && text_[at_] == '{') {
    ++at_;
  } else {
    done_ = true;
  }
}

bool JsonObject::fail() {
  done_ = true;
  failed_ = true;
  return false;
}

bool JsonObject::next() { return next_key() && skip(); }

bool JsonObject::next_key() {
  if (done_) return false;
  at_ = skip_space(text_, at_);
  if (at_ >= text_.size()) return fail();
  if (text_[at_] == '}') {
    done_ = true;
    return false;
  }
  if (!first_) {
    if (text_[at_] != ',') return fail();
    at_ = skip_space(text_, at_ + 1);
  }
  first_ = false;
  if (at_ >= text_.size() || text_[at_] != '"') return fail();
  const size_t quote = find_quote(text_, at_ + 1);
  if (quote == kNowhere) return fail();
  key_ = text_.substr(at_ + 1, quote - at_ - 1);
  at_ = skip_space(text_, quote + 1);
  if (at_ >= text_.size() || text_[at_] != ':') return fail();
  at_ = skip_space(text_, at_ + 1);
  return true;
}

/// Moves behind the value that begins here.
bool JsonObject::skip() {
  const size_t end = skip_value(text_, at_);
  if (end == kNowhere) return fail();
  value_ = text_.substr(at_, end - at_);
  at_ = end;
  return true;
}

std::string_view JsonObject::from_member(std::string_view object, std::string_view key) {
  JsonObject members(object);
  while (members.next_key()) {
    if (members.key_ == key) return members.text_.substr(members.at_);
    if (!members.skip()) break;
  }
  return {};
}

JsonArray::JsonArray(std::string_view text) : text_(text) {
  at_ = skip_space(text_, 0);
  if (at_ < text_.size() && text_[at_] == '[') {
    ++at_;
  } else {
    done_ = true;
  }
}

bool JsonArray::fail() {
  done_ = true;
  failed_ = true;
  return false;
}

bool JsonArray::next() {
  if (done_) return false;
  at_ = skip_space(text_, at_);
  if (at_ >= text_.size()) return fail();
  if (text_[at_] == ']') {
    done_ = true;
    return false;
  }
  if (!first_) {
    if (text_[at_] != ',') return fail();
    at_ = skip_space(text_, at_ + 1);
  }
  first_ = false;
  const size_t end = skip_value(text_, at_);
  if (end == kNowhere) return fail();
  value_ = text_.substr(at_, end - at_);
  at_ = end;
  return true;
}

std::optional<std::string> json_unescape(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  size_t at = 0;
  while (at < raw.size()) {
    const size_t backslash = raw.find('\\', at);
    out.append(raw.substr(at, backslash - at));
    if (backslash == std::string_view::npos) break;
    at = backslash + 1;
    if (!append_escape(out, raw, at)) return std::nullopt;
  }
  return out;
}

std::optional<std::string> json_string(std::string_view value) {
  if (value.size() < 2 || value.front() != '"' || value.back() != '"') return std::nullopt;
  const std::string_view raw = value.substr(1, value.size() - 2);
  if (raw.find('\\') == std::string_view::npos) return std::string(raw);
  return json_unescape(raw);
}

std::string json_string_or_empty(std::string_view value) { return json_string(value).value_or(std::string()); }

std::optional<std::int64_t> json_int(std::string_view value) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size()) return std::nullopt;
  return number;
}

std::string_view json_member(std::string_view object, std::string_view key) {
  JsonObject members(object);
  while (members.next()) {
    if (members.key() == key) return members.value();
  }
  return {};
}

std::string_view json_member(std::string_view object, std::string_view outer, std::string_view inner) {
  return json_member(JsonObject::from_member(object, outer), inner);
}

}  // namespace spillway::kube
