#!/usr/bin/env bash
# Holds the GPU kernels to what the compilers say of them, no GPU needed. Fails on spills and local
# memory, on more registers than kernels/registers.txt records, and when the decode kernel's PTX
# has lost its wide loads, asynchronous copies, conversions or matrix instructions. Also compiles
# for AMD where hipcc is installed.
#   scripts/check_kernels.sh             checks
#   scripts/check_kernels.sh --record    rewrites kernels/registers.txt from what is measured now
set -euo pipefail
cd "$(dirname "$0")/.."
record=${1:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
complain() {
  echo "check_kernels: $*"
  status=1
}

sources=(kernels/*.cu)
common=(-std=c++20 -I. -Isrc -DFP8KV_VERSION='"check"')

# "kernel<arguments> arch registers", one line for every kernel that ptxas compiled.
registers_of() {
  awk '/Compiling entry function/ { match($0, /'\''[^'\'']*'\''/); name = substr($0, RSTART + 1, RLENGTH - 2)
         match($0, /sm_[0-9a-z]+/); arch = substr($0, RSTART, RLENGTH) }
       /Used [0-9]+ registers/ { match($0, /Used [0-9]+/); print name, arch, substr($0, RSTART + 5, RLENGTH - 5) }' \
    "$1" | sed -E 's/^.*[0-9]([a-z_]+_kernel)/\1/'  # what is before changes with every build
}

check_cuda() {
  local source name
  for source in "${sources[@]}"; do
    name=$(basename "$source" .cu)
    if ! nvcc "${common[@]}" -O3 --fmad=false -DFP8KV_GPU=cuda -Xcompiler=-Wall,-Wextra \
        -Werror all-warnings -gencode arch=compute_80,code=sm_80 \
        -gencode arch=compute_90a,code=sm_90a -Xptxas -v \
        -c "$source" -o "$work/$name.o" > "$work/$name.log" 2>&1; then
      grep -E "error|warning" "$work/$name.log" || cat "$work/$name.log"
      complain "$source does not compile with nvcc"
      continue
    fi
    if grep -qE "[1-9][0-9]* bytes (stack frame|spill)" "$work/$name.log"; then
      complain "$source uses local memory: $(grep -cE '[1-9][0-9]* bytes spill stores' "$work/$name.log") kernels spill"
    fi
    registers_of "$work/$name.log" >> "$work/registers"
  done
  LC_ALL=C sort -o "$work/registers" "$work/registers"
  if [[ $record == --record ]]; then
    cp "$work/registers" kernels/registers.txt
    return
  fi
  check_registers
}

check_registers() {
  local kernel arch used most
  while read -r kernel arch used; do
    most=$(awk -v k="$kernel" -v a="$arch" '$1 == k && $2 == a { print $3 }' kernels/registers.txt)
    if [[ -z $most ]]; then
      complain "$kernel ($arch) is not in kernels/registers.txt; run scripts/check_kernels.sh --record"
    elif ((used > most)); then
      complain "$kernel ($arch) uses $used registers, recorded are $most"
    fi
  done < "$work/registers"
}

# How often `pattern` is in the PTX of the decode kernel for E4M3FN at head size 128.
in_decode() {
  awk '/\.entry/ { on = /attention_decode_kernel.*Fp8FormatE0EEELi128E/ } on' "$work/decode.ptx" |
    grep -cE "$1" || true
}

# Source of the counts: 16 tokens are 8 pieces of 16 bytes a lane, 16 products of 16 x 8 x 16, and
# 128 codes a lane, two to a conversion.
check_decode_ptx() {
  nvcc "${common[@]}" -O3 --fmad=false -DFP8KV_GPU=cuda -gencode arch=compute_90a,code=compute_90a \
    -ptx kernels/attention_decode.cu -o "$work/decode.ptx"
  local pattern least found
  while read -r least pattern; do
    found=$(in_decode "$pattern")
    ((found >= least)) || complain "decode kernel: $found of $least '$pattern' in its PTX"
  done <<'PATTERNS'
8 cp\.async\.cg\.shared\.global .*, 16,
8 ld\.shared\.v4
64 cvt\.rn\.f16x2\.e4m3x2
16 mma\.sync\.aligned\.m16n8k16
2 movmatrix
PATTERNS
  ! grep -q "ld\.local" "$work/decode.ptx" || complain "decode kernel: its PTX has ld.local"
  # Two barriers for the plan at the start; none in the loop.
  (($(in_decode "bar(rier)?\.sync") <= 2)) || complain "decode kernel: a block barrier too many"
}

check_hip() {
  local source
  for source in "${sources[@]}"; do
    hipcc -x hip "${common[@]}" -O3 -ffp-contract=off -DFP8KV_GPU=hip -Wall -Wextra -Werror \
      --offload-arch=gfx90a --offload-arch=gfx940 -c "$source" -o "$work/hip.o" ||
      complain "$source does not compile with hipcc"
  done
}

if command -v nvcc > /dev/null; then
  check_cuda
  check_decode_ptx
else
  echo "[skipped] nvcc is not on PATH: no registers, spills or PTX were checked"
fi
if command -v hipcc > /dev/null; then
  check_hip
else
  echo "[skipped] hipcc is not on PATH: nothing was compiled for AMD"
fi
exit $status
