# cmake -DSOURCE=... -DOUTPUT=... -P: writes the header with the commit, and touches it only if that changed.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT
"// Made by vk-provider/write_commit.cmake at each build.
#pragma once

namespace spillway {
inline constexpr const char* kGitCommit = \"@commit@\";
}  // namespace spillway
" @ONLY)
