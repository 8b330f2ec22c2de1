#include "vk-provider/control/ledger_codec.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace spillway::control {
namespace {

constexpr size_t kWords = 19;
constexpr std::string_view kNone = "-";

std::string word(std::string_view text) {
  if (text.empty()) return std::string(kNone);
  if (text == kNone) return "%2D";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte > ' ' && byte != '%' && byte < 0x7FU;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out;
}

template <class Number>
bool read(std::string_view text, Number& out, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  return error == std::errc() && end == text.data() + text.size();
}

std::optional<std::string> text_of(std::string_view word) {
  if (word == kNone) return std::string();
  std::string out;
  for (size_t i = 0; i < word.size(); ++i) {
    unsigned byte = 0;
    if (word[i] != '%') {
      out += word[i];
    } else if (i + 2 < word.size() && read(word.substr(i + 1, 2), byte, 16)) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      return std::nullopt;
    }
  }
  return out;
}

std::string time_word(const std::optional<base::WallTime>& t) {
  return t ? std::to_string(t->time_since_epoch().count()) : std::string(kNone);
}

/// Takes the words of a row one after the other; all is well if nothing failed and nothing is left.
class Words {
 public:
  explicit Words(std::string_view row) {
    while (count_ < kWords) {
      const size_t blank = row.find(' ');
      words_.at(count_++) = row.substr(0, blank);
      if (blank == std::string_view::npos) return;
      row.remove_prefix(blank + 1);
    }
    good_ = false;
  }
  std::string text() {
    auto out = text_of(next());
    good_ = good_ && out.has_value();
    return std::move(out).value_or(std::string());
  }
  std::int64_t number() {
    std::int64_t out = 0;
    good_ = read(next(), out) && out >= 0 && good_;
    return out;
  }
  std::optional<base::WallTime> time() {
    const std::string_view w = next();
    if (w == kNone) return std::nullopt;
    std::int64_t out = 0;
    good_ = read(w, out) && good_;
    return base::WallTime(std::chrono::microseconds(out));
  }
  std::string_view next() {
    if (at_ < count_) return words_.at(at_++);
    good_ = false;
    return {};
  }
  std::string_view last() const { return words_.at(count_ - 1); }
  void cut_last() { words_.at(count_ - 1).remove_suffix(1); }
  bool good() const { return good_ && count_ == kWords; }

 private:
  std::array<std::string_view, kWords> words_{};
  size_t count_ = 0;
  size_t at_ = 0;
  bool good_ = true;
};

}  // namespace

std::string encode_row(const core::LedgerEntry& e) {
  std::string out;
  const auto add = [&](const std::string& w) { out += (out.empty() ? "" : " ") + w; };
  for (const std::string* text : {&e.ref.provider.str(), &e.ref.id.str(), &e.tag.str(), &e.uid.str()}) add(word(*text));
  for (const base::SharedText* text :
       {&e.of.ns, &e.of.pod, &e.of.owner_kind, &e.of.owner_name, &e.of.node, &e.of.offer}) {
    add(word(text->str()));
  }
  for (const std::int64_t n :
       {e.per_hour.micros(), e.grain.count(), e.minimum.count(), e.settled.micros(), e.billed.count()}) {
    add(std::to_string(n));
  }
  const std::optional<base::WallTime> begin = e.begin;
  for (const auto& time : {std::optional(e.opened), begin, std::optional(e.since), std::optional(e.until)}) {
    add(time_word(time));
  }
  return e.gone ? out + "!" : out;
}

std::optional<core::LedgerEntry> decode_row(std::string_view row) {
  Words words(row);
  core::LedgerEntry e;
  e.gone = words.last().ends_with('!');
  if (e.gone) words.cut_last();
  e.ref.provider = base::ProviderName(words.text());
  e.ref.id = base::InstanceId(words.text());
  e.tag = base::InstanceTag(words.text());
  e.uid = base::PodUid(words.text());
  for (base::SharedText* text : {&e.of.ns, &e.of.pod, &e.of.owner_kind, &e.of.owner_name, &e.of.node, &e.of.offer}) {
    *text = words.text();
  }
  e.per_hour = base::Money::from_micros(words.number());
  e.grain = std::chrono::seconds(words.number());
  e.minimum = std::chrono::seconds(words.number());
  e.settled = base::Money::from_micros(words.number());
  e.billed = std::chrono::microseconds(words.number());
  const auto opened = words.time();
  e.begin = words.time();
  const auto since = words.time();
  const auto until = words.time();
  if (!words.good() || !opened || !since || !until || e.ref.id.empty()) return std::nullopt;
  e.opened = *opened;
  e.since = *since;
  e.until = *until;
  return e;
}

std::string day_of(base::WallTime time) { return base::to_rfc3339(time).substr(0, 10); }

base::Result<std::vector<core::LedgerEntry>> decode_shard(const kube::ConfigMap& map) {
  const auto bad = [&](const std::string& why) {
    return base::fail(base::ErrorKind::kInvalid, "ConfigMap " + map.name + " " + why);
  };
  const auto version = map.data.find("version");
  if (version == map.data.end()) return bad("has no version");
  if (version->second != kLedgerVersion) {
    return bad("has version " + version->second + ", and this Spillway knows only " + std::string(kLedgerVersion));
  }
  std::vector<core::LedgerEntry> out;
  const auto rows = map.data.find("rows");
  std::string_view text = rows == map.data.end() ? std::string_view() : std::string_view(rows->second);
  for (int line = 1; !text.empty(); ++line) {
    const size_t end = text.find('\n');
    auto entry = decode_row(text.substr(0, end));
    if (!entry) return bad("has a row that is none: line " + std::to_string(line));
    out.push_back(std::move(*entry));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return out;
}

base::Result<std::map<core::LedgerKey, core::LedgerEntry>> decode_shards(std::vector<kube::ConfigMap> maps) {
  // Names begin with the day; the numbers of one day are as long as their order needs.
  std::ranges::sort(maps, [](const auto& a, const auto& b) {
    const auto key = [](const kube::ConfigMap& m) {
      const auto day = m.labels.find(std::string(kLabelLedgerDay));
      return std::tuple(day == m.labels.end() ? std::string() : day->second, m.name.size(), m.name);
    };
    return key(a) < key(b);
  });
  std::map<core::LedgerKey, core::LedgerEntry> out;
  for (const kube::ConfigMap& map : maps) {
    auto entries = decode_shard(map);
    if (!entries) return base::fail(std::move(entries.error()));
    for (core::LedgerEntry& entry : *entries) {
      const core::LedgerKey key = core::key_of(entry);
      out.insert_or_assign(key, std::move(entry));
    }
  }
  return out;
}

kube::ConfigMap encode_shard(const std::string& installation, const std::string& day, int number,
                             const std::map<core::LedgerKey, std::string>& rows, bool open) {
  kube::ConfigMap out;
  out.name = "spillway-ledger-" + installation + "-" + day + (number > 1 ? "-" + std::to_string(number) : "");
  out.labels[std::string(kLabelLedger)] = installation;
  out.labels[std::string(kLabelLedgerDay)] = day;
  out.labels[std::string(kLabelLedgerMonth)] = day.substr(0, 7);
  out.labels[std::string(kLabelLedgerOpen)] = open ? "true" : "false";
  out.data["version"] = kLedgerVersion;
  std::string& text = out.data["rows"];
  for (const auto& [key, row] : rows) text += row + "\n";
  return out;
}

std::string ledger_selector(const std::string& installation) { return std::string(kLabelLedger) + "=" + installation; }

}  // namespace spillway::control
