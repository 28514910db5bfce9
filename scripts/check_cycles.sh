#!/usr/bin/env bash
# Fails when modules include each other, directly or through others. A module is all files of one
# name in one folder: model.h and model.cpp.
set -euo pipefail
cd "$(dirname "$0")/.."
# A line for each include: the module that has it, and the one it names.
includes() {
  grep -rnE '^#include "' --include='*.h' --include='*.cpp' --include='*.cu' --include='*.cuh' \
    src tools kernels |
    sed -E 's,^((src|tools)/)?([^:]*)\.[a-z]+:[0-9]+:#include "([^"]*)\.[a-z]+".*,\3 \4,' |
    awk '$1 != $2'
}
# tsort names the modules of every loop it finds, one a line, after a line that says so.
loops=$(includes | sort -u | tsort 2>&1 >/dev/null) || true
[[ -z $loops ]] && exit 0
sed -E 's/^tsort: -: input contains a loop:/these modules include each other:/; s/^tsort: /  /' \
  <<<"$loops"
exit 1
