#include "providers/fake/commands.hpp"

#include <charconv>
#include <string_view>

namespace spillway::providers::fake {
namespace {

constexpr int kMisuse = 2;  // what a shell says to a word that is no number

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const size_t begin = text.find_first_not_of(" \t\n");
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    words.emplace_back(text.substr(0, text.find_first_of(" \t\n")));
    text.remove_prefix(words.back().size());
  }
}

int to_exit_code(const std::string& word) {
  int code = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), code);
  return error == std::errc{} && end == word.data() + word.size() && code >= 0 && code <= 255 ? code : kMisuse;
}

std::string join(const std::vector<std::string>& words, size_t first, char between) {
  std::string out;
  for (size_t i = first; i < words.size(); ++i) {
    if (i > first) out += between;
    out += words[i];
  }
  return out + "\n";
}

}  // namespace

CommandResult run_command(std::vector<std::string> words) {
  CommandResult result;
  if (words.size() >= 3 && words[0].ends_with("sh") && words[1] == "-c") words = split(words[2]);
  const bool to_errors = !words.empty() && words.back() == ">&2";
  if (to_errors) words.pop_back();
  if (words.empty() || words[0] == "true") return result;
  std::string text;
  if (words[0] == "false") {
    result.exit_code = 1;
  } else if (words[0] == "exit") {
    result.exit_code = words.size() > 1 ? to_exit_code(words[1]) : 0;
  } else if (words[0] == "cat" && words.size() == 1) {
    result.copies_input = true;
  } else if (words[0] == "echo") {
    text = join(words, 1, ' ');
  } else {
    text = join(words, 0, '\n');
  }
  (to_errors ? result.errors : result.output) = std::move(text);
  return result;
}

}  // namespace spillway::providers::fake
