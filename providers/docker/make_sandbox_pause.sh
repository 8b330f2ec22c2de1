#!/bin/sh
# Assembles sandbox_pause.S and writes sandbox_pause.inc, the bytes that sandbox_image.cpp embeds. Run it after a
# change of the assembly, on x86_64 with binutils; the output is the same on every run. Then raise kSandboxTag.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
as --64 -o "$work/pause.o" sandbox_pause.S
ld -static -nostdlib -n -s --build-id=none -z noseparate-code -o "$work/pause" "$work/pause.o"
strip --strip-all --remove-section=.note.gnu.property "$work/pause"
{
  echo "// Written by make_sandbox_pause.sh from sandbox_pause.S; not edited by hand."
  od -An -v -tu1 -w20 "$work/pause" | sed 's/ *\([0-9][0-9]*\)/\1, /g; s/ $//'
} > sandbox_pause.inc
