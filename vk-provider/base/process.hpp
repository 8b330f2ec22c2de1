// A name for this process that a later process on the same machine can prove dead.
//
// `<host>_<boot>_<pid namespace>_<pid>_<start>`: boot and pid namespace say where the pid means something, the start
// time tells a process from a later one with the same pid. A holder of a lease that is proven dead needs no waiting
// out. Reads /proc; any thread.
#pragma once

#include <string>
#include <string_view>

namespace spillway::base {

std::string this_process(const std::string& host);

/// True only if `name` was made in this boot and this pid namespace, and its process is gone. "I cannot tell" is false.
bool is_proven_dead(std::string_view name);

}  // namespace spillway::base
