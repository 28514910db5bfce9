# shellcheck shell=bash
# The gates: checks that the compiled GPU kernels must pass. check_kernels.sh sources this file.
# Every gate takes two folders, and complains only of its own kind of problem. The source folder
# `root` has kernels/ and src/. The folder `out` has what compilers made of each source. For CUDA:
# name.cuda.log (ptxas' figures, for all architectures) and name.compute_90.ptx. For each
# architecture of AMD: name.gfx*.notes (the figures), and name.gfx*.s if a gate looks at it.

status=0
complain() {
  echo "check_kernels: $*"
  status=1
}

# The LLVM tools that belong to hipcc.
llvm() {
  [[ -n ${llvm_tools:-} ]] ||
    llvm_tools=$(dirname "$(hipcc --print-prog-name=clang-offload-bundler 2> /dev/null)")
  "$llvm_tools/$1" "${@:2}"
}

# Takes the code for AMD's GPUs out of a HIP object. An object without kernels has none.
unpack() {
  local object=$1 out=$2 name bundle part target arch
  bundle=$(mktemp "$out/bundle.XXXXXX")
  name=$(basename "$object" .cu.o)
  llvm llvm-objcopy -O binary --only-section=.hip_fatbin "$object" "$bundle"
  [[ -s $bundle ]] || { rm "$bundle"; return 0; }
  while read -r target; do
    [[ $target == *gfx* ]] || continue
    arch=${target##*-}
    part=$out/$name.$arch.elf
    llvm clang-offload-bundler --type=o --input="$bundle" --unbundle --targets="$target" \
      --output="$part"
    llvm llvm-readelf --notes "$part" > "$out/$name.$arch.notes"
    if [[ $name == attention_decode || $name == experts ]]; then
      llvm llvm-objdump -d --no-show-raw-insn "$part" > "$out/$name.$arch.s"
    fi
    rm "$part"
  done < <(llvm clang-offload-bundler --list --type=o --input="$bundle")
  rm "$bundle"
}

# GPUs that the CUDA module has PTX for, and no machine code.
later=(sm_100 sm_120)

# Compiles the PTX for these, as their driver does when it loads the module. Leaves
# name.sm_*.cuda.log beside it.
compile_for_later() {
  local out=$1 arch
  for arch in "${later[@]}"; do
    find "$out" -name '*.compute_90.ptx' -printf "$arch %p\n"
  done | xargs -P "$(nproc)" -L 1 bash -c \
    'ptxas -arch="$1" -v "$2" -o /dev/null > "${2%.compute_90.ptx}.$1.cuda.log" 2>&1' compile
}

# Collects what the gates read, from a build folder with FP8KV_KEEP_CODE. Takes only sources that
# exist now: the folder also keeps the code of older ones. Fails if there is nothing for a gate to
# read, since gates would then pass.
collect() {
  local root=$1 build=$2 out=$3 source name
  for source in "$root"/kernels/*/*.cu; do
    name=$(basename "$source" .cu)
    if command -v nvcc > /dev/null; then
      cp "$build/kernels/cuda/code/$name".{cuda.log,compute_90.ptx} "$out"
    fi
    if command -v hipcc > /dev/null; then unpack "$build/kernels/hip/$name.cu.o" "$out"; fi
  done
  if command -v hipcc > /dev/null && ! compgen -G "$out/attention_decode.gfx*.s" > /dev/null; then
    complain "$build/kernels/hip/attention_decode.cu.o has no code for AMD's GPUs"
  fi
}

all_gates() {
  local gate
  for gate in local_memory registers waits decode_ptx decode_gcn experts_ptx experts_gcn; do "gate_$gate" "$1" "$2"; done
}

# Prints "kernel arch registers local spilt scalars" for every compiled kernel. `local` is bytes of
# local memory, `spilt` the bytes of spilt registers in it. `scalars` counts scalar registers spilt
# to lanes of vector registers.
measured() {
  {
    find "$1" -name '*.cuda.log' -exec awk '
      /Compiling entry function/ {
        split($0, part, "\047"); name = part[2]; arch = part[4]; local = spilt = 0
      }
      /bytes stack frame/ { local += $1; spilt += $5 }
      /Used [0-9]+ registers/ { sub(/.*Used /, ""); print name, arch, $1, local, spilt, 0 }' {} +
    find "$1" -name '*.gfx*.notes' -exec awk '
      FNR == 1 { n = split(FILENAME, part, "."); arch = part[n - 1] }
      /^    \.name: / { name = $2 }
      /^    \.private_segment_fixed_size: / { local = $2 }
      /^    \.sgpr_spill_count: / { scalars = $2 }
      /^    \.vgpr_count: / { registers = $2 }
      /^    \.vgpr_spill_count: / { print name, arch, registers, local, 4 * $2, scalars }' {} +
  } | sed -E 's/^[^ ]*[0-9]([a-z_]+_kernel)/\1/' |  # the part before changes with every build
    LC_ALL=C sort
}

gate_local_memory() {
  local line
  while read -r line; do complain "$line"; done < <(measured "$2" | awk '$4 + $5 > 0 {
    print $1 " (" $2 ") uses " $4 " bytes of local memory, " $5 " of them for spilt registers" }')
}

# Names the compilers: register counts depend on them.
compilers() {
  if command -v nvcc > /dev/null; then echo "# nvcc: $(nvcc --version | tail -n 1)"; fi
  if command -v hipcc > /dev/null; then
    echo "# hipcc: $(hipcc --version 2> /dev/null | grep -m 1 clang)"
  fi
}

# Prints the lines of kernels/gates/registers.txt. Spilt scalar registers are known, and counted
# here.
registers_in() {
  measured "$1" | awk '{ print $1, $2, $3 } $6 > 0 { print $1, $2 ".scalars_spilt", $6 }'
}

# Clang 15 spends other registers on AMD's GPUs each time that it compiles a kernel with spilt
# scalars. In four runs the counts differed by 2 registers and by 6 scalars.
gate_registers() {
  local line other before=$status
  status=0
  while read -r line; do complain "$line"; done < <(registers_in "$2" | awk '
    function say(kernel, arch, text) { print kernel " (" arch ") " text }
    /^#/ { next }
    NR == FNR { most[$1, $2] = $3; next }
    {
      split($2, part, "."); measured[part[1]]; seen[$1, $2]
      scalars = part[2] != ""; slack = part[1] !~ /^gfx/ ? 0 : scalars ? 16 : 4
    }
    scalars && !(($1, $2) in most) { most[$1, $2] = 0 }
    !(($1, $2) in most) {
      say($1, $2, "is not in kernels/gates/registers.txt; run scripts/check_kernels.sh --record"); next
    }
    $3 > most[$1, $2] + slack { say($1, $2, "uses " $3 " registers, recorded are " most[$1, $2]) }
    END {
      for (key in most) {
        split(key, part, SUBSEP); split(part[2], arch, ".")
        if (arch[1] in measured && !(key in seen) && arch[2] == "") {
          say(part[1], part[2], "is in kernels/gates/registers.txt, but not compiled")
        }
      }
    }' "$1/kernels/gates/registers.txt" -)
  if ((status)) && other=$(compilers | grep -vxFf "$1/kernels/gates/registers.txt"); then
    echo "kernels/gates/registers.txt was not recorded with ${other//# /}"
  fi
  ((status |= before)) || true
}

# Rewrites the lines that `out` has measurements of, and keeps those of other architectures.
record_registers() {
  local now=$2/registers
  registers_in "$2" > "$now"
  compilers >> "$now"
  awk '{ split($2, part, "."); about = /^#/ ? $2 : part[1] }
       NR == FNR { measured[about]; next } !(about in measured)' \
    "$now" "$1/kernels/gates/registers.txt" > "$now.kept"
  LC_ALL=C sort "$now" "$now.kept" > "$1/kernels/gates/registers.txt"
}

# A kernel may start while the one before it still runs (after_previous). So every kernel has to
# wait for that one before it touches global memory.
gate_waits() {
  local ptx line
  for ptx in "$2"/*.compute_90.ptx; do
    [[ -e $ptx ]] || continue
    while read -r line; do complain "$line"; done < <(awk '
      /\.entry/ { sub(/.*\.entry /, ""); sub(/\(.*/, ""); name = $0; waits = early = 0 }
      /griddepcontrol\.wait/ { waits = 1 }
      waits || name == "" { next }
      /[[:space:]](ld|st|atom|red)\./ && !/\.(param|shared|local|const)/ { early = 1 }
      /cp\.async/ { early = 1 }
      early { print name " touches memory before it waits for the kernel before it"; name = "" }
    ' "$ptx" | sed -E 's/^[^ ]*[0-9]([a-z_]+_kernel)/\1/')
  done
}

# Reads "least pattern" lines from stdin. Complains if a kernel's code has fewer matches of a
# pattern.
require() {
  local what=$1 code=$2 least pattern found
  while read -r least pattern; do
    found=$(grep -cE "$pattern" "$code" || true)
    ((found >= least)) || complain "$what has $found of $least '$pattern'"
  done
}

# Complains, with the reason `why`, if `pattern` has more matches than `most`.
forbid() {
  local what=$1 code=$2 most=$3 pattern=$4 why=$5
  (($(grep -cE "$pattern" "$code" || true) <= most)) || complain "$what $why"
}

# The decode kernel for E4M3FN at head size 128. 16 tokens take 16 products of 16 x 8 x 16; per
# lane, they are 8 pieces of 16 bytes and 128 codes, two to a conversion. The code has the copies
# twice: at the start and in the loop. A ninth wide load reads the plan.
# The kernel that adds up requests the partial results of 16 chunks together: one after the other,
# they would take longer than a short context.
gate_decode_ptx() {
  local ptx=$2/attention_decode.compute_90.ptx code=$2/decode.ptx what="the decode kernel's PTX"
  [[ -e $ptx ]] || return 0
  awk '/\.entry/ { on = /attention_decode_kernel.*Fp8FormatE0EEELi128ELb0E/ } on' "$ptx" > "$code"
  require "$what" "$code" <<'PATTERNS'
16 cp\.async\.cg\.shared\.global\.L2::128B .*, 16,
9 ld\.shared\.v4
64 cvt\.rn\.f16x2\.e4m3x2
16 mma\.sync\.aligned\.m16n8k16
2 movmatrix
PATTERNS
  awk '/\.entry/ { on = /attention_combine_kernel/ } on' "$ptx" > "$code.combine"
  require "the PTX that adds up chunks" "$code.combine" <<< '16 ld\.global\.v4\.f32'
  forbid "$what" "$ptx" 0 'ld\.local' "has ld.local"
  # The plan at the start has two; the loop has none.
  forbid "$what" "$code" 2 'bar(rier)?\.sync' "has a block barrier too many"
}

# The decode kernel for AMD. 16 tokens take 16 products of 16 x 16 x 16. Per lane, they are 2 pieces
# of 16 bytes of keys, 4 of 8 bytes of values, and 64 codes. A conversion takes four codes, with two
# byte selections, and puts signs back twice. The code has the loads twice: at the start and in the
# loop; 4 more of 16 bytes read the query. 8 selections bring values of two tokens together.
gate_decode_gcn() {
  local assembly code what
  for assembly in "$2"/attention_decode.gfx*.s; do
    [[ -e $assembly ]] || continue
    code=$assembly.decode
    what="the decode kernel's assembly ($(basename "$assembly" .s | cut -d. -f2))"
    awk '/<_Z.*>:$/ { on = /attention_decode_kernel.*Fp8FormatE0EEELi128ELb0E/ } on' \
      "$assembly" > "$code"
    # Only up to the last product: partial results are loaded after it.
    awk '{ line[NR] = $0 } /v_mfma/ { last = NR }
         END { for (i = 1; i <= last; ++i) print line[i] }' "$code" > "$code.loop"
    require "$what" "$code.loop" <<'PATTERNS'
8 global_load_dwordx4
8 global_load_dwordx2
40 v_perm_b32
32 v_and_or_b32
16 v_mfma_f32_16x16x16_?f16
PATTERNS
    forbid "$what" "$code" 0 '[[:space:]](scratch|buffer)_(load|store)' "has scratch accesses"
    forbid "$what" "$code" 2 's_barrier' "has a block barrier too many"
    awk '/global_load_dwordx4/ { waits = 0 } /vmcnt\([0-5]\)/ { ++waits } /v_mfma/ && waits { exit 1 }' \
      "$code" || complain "$what waits for the next tile's loads before this one's products"
  done
}

# The grouped product of experts, for BF16 and SiLU. A thread has 4 rows and 4 columns of gate and
# of up: 32 products per element of depth. nvcc takes two elements at a time; the rest of the 96
# belongs to the activation. Operands come from shared memory in pieces of 16 bytes, 3 per element.
# A slice has two barriers.
gate_experts_ptx() {
  local ptx=$2/experts.compute_90.ptx code=$2/experts.ptx what="the experts' PTX"
  [[ -e $ptx ]] || return 0
  awk '/\.entry/ { on = /expert_hidden_kernelILNS_10ActivationE0ENS0_4Bf16/ } on' "$ptx" > "$code"
  require "$what" "$code" <<'PATTERNS'
96 fma\.rn\.f32
6 ld\.shared\.v4
PATTERNS
  forbid "$what" "$code" 2 'bar(rier)?\.sync' "has a block barrier too many"
}

# The experts' kernel for AMD, where one instruction computes two products.
gate_experts_gcn() {
  local assembly code what
  for assembly in "$2"/experts.gfx*.s; do
    [[ -e $assembly ]] || continue
    code=$assembly.hidden
    what="the experts' assembly ($(basename "$assembly" .s | cut -d. -f2))"
    awk '/<_Z.*>:$/ { on = /expert_hidden_kernelILNS_10ActivationE0ENS0_4Bf16/ } on' \
      "$assembly" > "$code"
    require "$what" "$code" <<'PATTERNS'
256 v_pk_fma_f32
PATTERNS
    forbid "$what" "$code" 0 '[[:space:]](scratch|buffer)_(load|store)' "has scratch accesses"
    forbid "$what" "$code" 2 's_barrier' "has a block barrier too many"
  done
}
