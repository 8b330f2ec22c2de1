// The honesty script: requests in a text form, without what they are expected to answer.
//
// Pure. The same script runs on the model and on a real API server, and what both say must be equal (test/README.md).
//
//   # A pod that is bound                      the step's title; more lines are comments
//   POST /api/v1/namespaces/honest/pods        VERB [words] target
//   {"metadata": {"name": "web"}}              the body, over as many lines as it likes
//   save uid /metadata/uid                     ${uid} in later targets and bodies
//
// Times in a script lie in 2020, so that those of a server can be told from them.
//
// Words: strategic, merge, apply, text (content type), metadata, metadata-list (the answer is to be
// PartialObjectMetadata, or a list of it).
//   WATCH w [metadata] target                  opens a watch called w
//   READ w until DELETED web                   its events up to the first that says this; `until end`: of the stream
//   CLOSE w
//   EXPIRE target                              until the server has forgotten what a continue token stands for
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vk-provider/base/error.hpp"
#include "vk-provider/kube/kube_api.hpp"

namespace spillway::test::api_script {

struct Step {
  Step() = default;
  enum class Kind { kRequest, kWatch, kRead, kClose, kExpire };
  Kind kind = Kind::kRequest;
  std::string title;
  std::string line;           // as it stands in the script, for the transcript
  kube::KubeRequest request;  // with ${names}
  std::string watch;          // the name of a watch
  std::string until;
  std::vector<std::pair<std::string, std::string>> saves;  // name, JSON pointer into the answer
};

/// kInvalid names the line.
base::Result<std::vector<Step>> parse(std::string_view text);

/// Puts saved values in the places of ${names}; those that are not known stay.
std::string fill_in(std::string text, const std::map<std::string, std::string>& values);

}  // namespace spillway::test::api_script
