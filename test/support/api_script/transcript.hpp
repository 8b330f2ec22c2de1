// Makes two runs of the honesty script comparable: one text for what a server said, without what may differ.
//
// Pure. What is dropped or replaced is all of this, and nothing else:
//   - UIDs, tokens and times of the server become numbers or words; equal ones stay equal;
//   - resourceVersions of objects become their rank in the run (v1, v2 ...): which are equal and which are later stays;
//     of a list or bookmark, the latest object's version that it covers;
//   - empty members (null, {}, [], "") and defaults that nobody of ours reads (kDefaults in the source);
//   - bookmarks that end no initial list: they come when they like;
//   - managedFields but for who owns labels and annotations of a Node, which the daemon reads;
//   - numbers in messages about versions, keys of etcd, and what follows the first line of a message.
#pragma once

#include <string>
#include <vector>

#include "test/support/api_script/runner.hpp"

namespace spillway::test::api_script {

std::string to_transcript(const std::vector<Said>& run);

/// The first lines at which two transcripts part, with the step's title, for people; empty if they are equal.
std::string first_difference(const std::string& expected, const std::string& actual);

}  // namespace spillway::test::api_script
