// Tables with a header line and commas between; a field with commas stands in double quotes.
#pragma once

#include <expected>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::placebench {

class Table {
 public:
  /// Refuses a file that lacks one of `columns`, and lines with fewer fields than the header.
  static std::expected<Table, std::string> read(const std::filesystem::path& file,
                                                const std::vector<std::string>& columns);

  size_t rows() const { return rows_.size(); }
  /// By the position in `columns`.
  const std::string& text(size_t row, size_t column) const { return rows_[row][where_[column]]; }
  /// 0 for an empty field; a field that is no number is an error of the table.
  double number(size_t row, size_t column);
  int whole(size_t row, size_t column) { return static_cast<int>(number(row, column)); }
  /// The first thing that was wrong; empty if nothing was.
  const std::string& error() const { return error_; }
  /// Of the whole text, as 16 hexadecimal digits.
  const std::string& digest() const { return digest_; }

 private:
  std::string name_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> where_;
  std::string error_;
  std::string digest_;
};

}  // namespace spillway::placebench
