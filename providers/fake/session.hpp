// Processes and ports of the toy, in which nothing runs: they live in the provider, the cloud knows nothing of them.
//
// Owned by whoever opened them, and die before the provider; reactor thread only. They do not end with their container.
#pragma once

#include <memory>
#include <string>

#include "providers/fake/pipe.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::providers::fake {

/// A command (commands.hpp). One that copies its input ends with it.
provider::ExecSessionPtr make_exec(async::Timers& timers, provider::ExecOptions options);
/// A container's own process copies its input; without any it shows `log`, which may be null otherwise.
provider::ExecSessionPtr make_attach(async::Timers& timers, const provider::ExecOptions& options,
                                     async::ByteStreamPtr log);

/// What listens on every port: answers an HTTP request (GET or HEAD) with 200 and a line of text, and ends; sends back
/// whatever else is sent to it.
async::ByteStreamPtr make_port(async::Timers& timers, std::string text);

}  // namespace spillway::providers::fake
