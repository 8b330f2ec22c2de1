#include "vk-provider/daemon/cli_output.hpp"

#include <algorithm>

namespace spillway::daemon {
namespace {

/// Characters, not bytes, as far as UTF-8 goes.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

std::string printable(std::string text) {
  constexpr unsigned char kDelete = 0x7F;
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) == kDelete; },
      ' ');
  return text;
}

std::string Table::to_text() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  std::vector<std::vector<std::string>> cells;
  for (const auto& row : rows_) {
    auto& line = cells.emplace_back();
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i) {
      line.push_back(printable(row[i]));
      widths[i] = std::max(widths[i], width_of(line.back()));
    }
  }
  std::string out;
  for (const auto& line : cells) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (i > 0) text += "  ";
      text += line[i] + std::string(widths[i] - width_of(line[i]), ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  }
  return out;
}

}  // namespace spillway::daemon
