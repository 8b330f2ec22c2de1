#!/usr/bin/env bash
# Sets up what is missing, then runs every check and test. The last line is `N passed, N failed`.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! test/cluster/setup.sh; then
  echo "test: the machine could not be set up; what failed is said above"
  echo "0 passed, 1 failed"
  exit 1
fi
exec build/venv/bin/python -m test.cluster.suites "$@"
