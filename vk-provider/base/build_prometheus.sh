#!/usr/bin/env bash
# Builds the static core of prometheus-cpp from Debian's own source package into the cache; does nothing if it is there.
# Debian ships the library only as a shared object, and the daemon is to start on an image without it.
set -euo pipefail

version=1.0.1
cache="${SPILLWAY_CACHE:-$HOME/.cache/spillway}"
target="$cache/prometheus-cpp-$version"
[[ -f "$target/lib/libprometheus-cpp-core.a" ]] && exit 0

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir -p lists src
cat > debian.sources <<SOURCES
Types: deb-src
URIs: http://deb.debian.org/debian
Suites: bookworm
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
SOURCES
apt_options=(-o "Dir::Etc::sourcelist=$work/debian.sources" -o Dir::Etc::sourceparts=/dev/null
             -o "Dir::State::lists=$work/lists" -o APT::Sandbox::User=root)
apt-get "${apt_options[@]}" -qq update
apt-get "${apt_options[@]}" -qq source --download-only "prometheus-cpp=$version-1"
tar -xf "prometheus-cpp_$version.orig.tar.gz" -C src --strip-components=1

# The export header and the source list are those of core/CMakeLists.txt; the rest of that project is not needed.
mkdir -p "$target/lib" objects
cat > src/core/include/prometheus/detail/core_export.h <<'HEADER'
#pragma once
#define PROMETHEUS_CPP_CORE_EXPORT
#define PROMETHEUS_CPP_CORE_NO_EXPORT
HEADER
for source in src/core/src/*.cc src/core/src/detail/*.cc; do
  [[ -f "$source" ]] || continue
  clang++-19 -std=c++17 -O2 -ffunction-sections -fdata-sections -DHAVE_ZLIB -Isrc/core/include -c "$source" \
    -o "objects/$(basename "${source%.cc}").o"
done
ar rcs "$target/lib/libprometheus-cpp-core.a.part" objects/*.o
mv "$target/lib/libprometheus-cpp-core.a.part" "$target/lib/libprometheus-cpp-core.a"
