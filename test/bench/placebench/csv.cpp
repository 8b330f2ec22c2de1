#include "test/bench/placebench/csv.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

namespace spillway::placebench {
namespace {

std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      out.emplace_back();
    } else if (c != '\r') {
      out.back() += c;
    }
  }
  return out;
}

std::string digest_of(std::string_view text) {
  std::uint64_t hash = 1469598103934665603ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return fmt::format("{:016x}", hash);
}

}  // namespace

std::expected<Table, std::string> Table::read(const std::filesystem::path& file,
                                              const std::vector<std::string>& columns) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::unexpected(fmt::format("{}: cannot be read", file.string()));
  std::stringstream text;
  text << in.rdbuf();
  Table table;
  table.name_ = file.filename().string();
  table.digest_ = digest_of(text.view());
  std::string line;
  if (!std::getline(text, line)) return std::unexpected(fmt::format("{}: is empty", table.name_));
  const std::vector<std::string> header = fields_of(line);
  for (const std::string& column : columns) {
    const auto it = std::ranges::find(header, column);
    if (it == header.end()) return std::unexpected(fmt::format("{}: has no column {}", table.name_, column));
    table.where_.push_back(static_cast<size_t>(it - header.begin()));
  }
  for (size_t number = 2; std::getline(text, line); ++number) {
    if (line.empty() || line == "\r") continue;
    std::vector<std::string> fields = fields_of(line);
    if (fields.size() < header.size()) {
      return std::unexpected(
          fmt::format("{}:{}: has {} fields, the header has {}", table.name_, number, fields.size(), header.size()));
    }
    table.rows_.push_back(std::move(fields));
  }
  return table;
}

double Table::number(size_t row, size_t column) {
  const std::string& field = text(row, column);
  if (field.empty()) return 0;
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error == std::errc{} && end == field.data() + field.size() && std::isfinite(value)) return value;
  if (error_.empty()) error_ = fmt::format("{}:{}: '{}' is no number", name_, row + 2, field);
  return 0;
}

}  // namespace spillway::placebench
