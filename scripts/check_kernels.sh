#!/usr/bin/env bash
# Checks the GPU kernels in the compilers' output, without a GPU, for nvcc and hipcc if they are on
# PATH. Builds the modules. Fails on local memory, spills, and more registers than
# kernels/gates/registers.txt records. Also fails if the decode kernel has lost its wide loads,
# asynchronous copies, conversions or matrix instructions, or the product of experts its blocking.
#   scripts/check_kernels.sh [FOLDER]      checks the modules of a build folder (build/gates)
#   scripts/check_kernels.sh --later [FOLDER]   also compiles the PTX for sm_100 and sm_120, which
#                                          takes minutes: CI leaves it out
#   scripts/check_kernels.sh --record      rewrites kernels/gates/registers.txt with new measurements
#   scripts/check_kernels.sh --self-test   breaks copies of the kernels, to see every check complain
set -euo pipefail
cd "$(dirname "$0")/.."
source kernels/gates/gates.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

gpus=()
for build in cuda=nvcc hip=hipcc; do
  if command -v "${build#*=}" > /dev/null; then
    gpus+=("${build%=*}")
  else
    echo "[skipped] ${build#*=} is not on PATH: its gates are off"
  fi
done
if [[ ${1:-} == --self-test ]]; then
  source kernels/gates/self_test.sh
  self_test
  exit
fi
((${#gpus[@]})) || exit 0

mode=
if [[ ${1:-} == --record || ${1:-} == --later ]]; then
  mode=$1
  shift
fi
folder=${1:-build/gates}
options=()
[[ -f $folder/CMakeCache.txt ]] ||
  options=(-G Ninja -DCMAKE_BUILD_TYPE=Release -DFP8KV_WERROR=ON -DFP8KV_TESTS=OFF)
modules=$(IFS=';' && echo "${gpus[*]}")
# The emulator's module stays, where check_ptx builds it in the same folder.
! grep -qs '^FP8KV_GPU:.*\<ptx\>' "$folder/CMakeCache.txt" || modules+=";ptx"
cmake -S . -B "$folder" "${options[@]}" "-DFP8KV_GPU=$modules" \
  -DFP8KV_KEEP_CODE=ON > /dev/null
cmake --build "$folder" --target "${gpus[@]/#/fp8kv_}" >&2
collect . "$folder" "$work"
if [[ -n $mode && ${gpus[*]} == *cuda* ]]; then compile_for_later "$work"; fi
if [[ $mode == --record ]]; then
  record_registers . "$work"
else
  all_gates . "$work"
fi
exit $status
