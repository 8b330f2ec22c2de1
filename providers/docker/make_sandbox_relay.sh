#!/bin/sh
# Compiles sandbox_relay.c and writes sandbox_relay.inc, the bytes that sandbox_image.cpp embeds. Run it after a change
# of the program, with clang-19 and lld-19; the output is the same on every run. Then raise kSandboxTag.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
clang-19 --target=x86_64-linux-gnu -std=c11 -Os -Wall -Wextra -Werror -ffreestanding -fno-stack-protector \
  -fno-asynchronous-unwind-tables -fno-ident -fno-pic -mno-sse -nostdlib -static -fuse-ld=lld \
  -Wl,--build-id=none,-z,noseparate-code,--nmagic,--no-rosegment,--strip-all -o "$work/relay" sandbox_relay.c
{
  echo "// Written by make_sandbox_relay.sh from sandbox_relay.c; not edited by hand."
  od -An -v -tu1 -w20 "$work/relay" | sed 's/ *\([0-9][0-9]*\)/\1, /g; s/ $//'
} > sandbox_relay.inc
