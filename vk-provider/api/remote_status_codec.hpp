// What a client of exec and attach reads and writes beside the bytes: how the command ended, and sizes of its terminal.
//
// Pure; what the decoder is fed comes from anybody.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/error.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::api {

/// How a command ended.
struct CommandEnd {
  CommandEnd() = default;
  int exit_code = 0;    // 0: success
  std::string failure;  // set: it was not run, or was lost; the exit code does not count
};

/// As metav1.Status; with `as_text`, which protocols before v4 want, as a sentence, empty for a success.
std::string encode_end(const CommandEnd& end, bool as_text);

/// That there will be no stream, with the HTTP status and why, as metav1.Status.
std::string encode_refusal(int status, const std::string& message);

/// Sizes as they come: JSON objects, one after the other, with or without white space between them.
class SizeDecoder {
 public:
  /// kInvalid, which is final, for anything else.
  base::Result<std::vector<provider::TerminalSize>> feed(std::string_view bytes);

 private:
  std::string rest_;
};

}  // namespace spillway::api
