#!/usr/bin/env bash
# Fails if modules include each other, directly or through others. A module is all files with the
# same name in one folder, like model.h and model.cpp.
set -euo pipefail
cd "$(dirname "$0")/.."
# One line for each include: the including module, and the included one.
includes() {
  grep -rnE '^#include "' --include='*.h' --include='*.cpp' --include='*.cu' --include='*.cuh' \
    src tools kernels |
    sed -E 's,^((src|tools)/)?([^:]*)\.[a-z]+:[0-9]+:#include "([^"]*)\.[a-z]+".*,\3 \4,' |
    awk '$1 != $2'
}
# For each loop, tsort prints a message and then its modules, one per line.
loops=$(includes | sort -u | tsort 2>&1 >/dev/null) || true
[[ -z $loops ]] && exit 0
sed -E 's/^tsort: -: input contains a loop:/these modules include each other:/; s/^tsort: /  /' \
  <<<"$loops"
exit 1
