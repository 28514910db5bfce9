#!/usr/bin/env bash
# Holds the GPU kernels to what the compilers say of them, no GPU needed: nvcc and hipcc, those that
# are on PATH. Fails on a kernel that does not compile, on local memory and spills, on more
# registers than kernels/gates/registers.txt records, and when the decode kernel has lost its wide loads,
# asynchronous copies, conversions or matrix instructions.
#   scripts/check_kernels.sh               checks
#   scripts/check_kernels.sh --record      rewrites kernels/gates/registers.txt from what is measured now
#   scripts/check_kernels.sh --self-test   breaks copies of the kernels, to see every check complain
set -euo pipefail
cd "$(dirname "$0")/.."
source kernels/gates/gates.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for compiler in nvcc hipcc; do
  command -v $compiler > /dev/null || echo "[skipped] $compiler is not on PATH: its gates are off"
done
if [[ ${1:-} == --self-test ]]; then
  source kernels/gates/self_test.sh
  self_test
  exit
fi

mapfile -t sources < <(ls -S kernels/*/*.cu | sed -n 's|.*/||; s/\.cu$//p')  # the longest come first
compile_all . "$work" "${sources[@]}"
if [[ ${1:-} == --record ]]; then
  gate_compiles . "$work"
  ((status == 0)) && record_registers . "$work"
else
  all_gates . "$work"
fi
exit $status
