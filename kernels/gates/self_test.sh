# shellcheck shell=bash disable=SC2154,SC2016
# Breaks copies of the kernels, one thing at a time, and checks that the gates of gates.sh complain.
# check_kernels.sh --self-test sources this file.

decode=kernels/attention/attention_decode.cu
record=kernels/gates/registers.txt
queue=kernels/attention/lane_queue.cuh
no_product='/Mma::run<T>\(sums\[.*\], a, query_/d'
barrier='s/^ *queue_\.turn\(\);/&block_sync();/'
rolled='s/#pragma unroll$/#pragma unroll 1/'

not_as_expected() {
  echo "check_kernels: self-test: $*" | tee -a "$work/unexpected"
}

# Fails if an edit changes nothing, since it would test nothing.
edit() {
  local root=$1 file=$2 script=$3
  cp "$root/$file" "$root/before"
  sed -i -E "$script" "$root/$file"
  ! cmp -s "$root/before" "$root/$file" || not_as_expected "sed finds nothing in $file: $script"
}

# Makes a copy to break. Its decode kernel has only what the gates look at, and compiles in seconds.
make_base() {
  local root=$1 one='std::is_same_v<Cache, Fp8<Fp8Format::e4m3fn>>'
  mkdir "$root"
  cp -r kernels src "$root"
  edit "$root" $decode 's/run<Cache, (64|96|256)>/run<Cache, 128>/'
  edit "$root" $decode "s/if constexpr \(sizeof\(Cache\) <= 2\)/if constexpr ($one)/"
  edit "$root" $record '/^#|^embed_kernel|^expert_|^gate_rows_|^attention_combine|attention_decode.*FormatE0EEELi128E/!d'
}

# Runs a command in the background, at most as many at a time as there are cores.
in_parallel() {
  while (($(jobs -rp | wc -l) >= $(nproc))); do wait -n || true; done
  "$@" &
}

# Names the builds whose compilers are installed.
builds() {
  if command -v nvcc > /dev/null; then echo cuda; fi
  if command -v hipcc > /dev/null; then printf '%s\n' gfx90a gfx940; fi
}

# Compiles one source for one of the builds, with the modules' flags, into the files that gates
# read. A last argument `ptx` says that the PTX is all that is read of cuda.
compile() {
  local build=$1 root=$2 out=$3 name=$4 reads=${5:-all} scratch=$3/$4.$1.files
  local flags=(-std=c++20 -O3 "-I$root" "-I$root/src")
  local file=("$root"/kernels/*/"$name.cu")
  mkdir "$scratch"
  if [[ $build == cuda ]]; then
    flags=(nvcc "${flags[@]}" --fmad=false -DFP8KV_GPU=cuda)
    if [[ $reads == ptx ]]; then
      "${flags[@]}" -gencode=arch=compute_90,code=compute_90 --ptx "${file[@]}" \
        -o "$scratch/$name.compute_90.ptx"
    else
      "${flags[@]}" -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=sm_90 \
        --threads 2 -Xptxas -v --keep --keep-dir "$scratch" -c -o "$scratch/$name.o" \
        "${file[@]}" > "$out/$name.cuda.log" 2>&1
    fi
    mv "$scratch/$name.compute_90.ptx" "$out" || return 1
  else
    hipcc -x hip "${flags[@]}" -ffp-contract=off -DFP8KV_GPU=hip "--offload-arch=$build" \
      -c "${file[@]}" -o "$scratch/$name.cu.o" 2> /dev/null || return 1
    unpack "$scratch/$name.cu.o" "$out"
  fi
  rm -r "$scratch"
}

# Breaks a copy by `script` and compiles one source of it in one build, for what the gate reads.
# Expects a message of the gate that matches the pattern `complaint`.
#   seed <gate> <build> <source> <file> <script> <complaint>
seed() {
  if builds | grep -qx "$2"; then in_parallel seed_now "$@"; fi
}

# Names what a gate reads of cuda.
reads_of() {
  case $1 in
    waits | decode_ptx | experts_ptx) echo ptx ;;
    *) echo all ;;
  esac
}

seed_now() {
  local gate=$1 build=$2 source=$3 file=$4 script=$5 complaint=$6 root out said=
  root=$(mktemp -d "$work/seed.XXXXXX")
  out=$root/out
  mkdir "$out"
  cp -r "$work/base/." "$root"
  edit "$root" "$file" "$script"
  if [[ $file == "$record" ]]; then  # the code is the base's
    cp "$work/out/$source.${build/cuda/c}"* "$out"  # c: name.cuda.log and name.compute_90.ptx
  else
    compile "$build" "$root" "$out" "$source" "$(reads_of "$gate")" ||
      not_as_expected "$build, $file, $script: does not compile"
  fi
  said=$("gate_$gate" "$root" "$out")
  # shellcheck disable=SC2053
  [[ $said == *$complaint* ]] ||
    not_as_expected "$build, $file, $script: the gate '$gate' does not say '$complaint'," \
      "but '$said'"
  rm -r "$root"
}

seed_all_kernels() {
  local build
  local few='s/\(Worker<Cache, kHeadDim, kDeep>::kBlocks\)\)$/8)/'
  local indexed='$a __global__ void seeded_kernel(int* x) {\
    int y[64];\
    for (int i = 0; i < 64; ++i) y[i] = i * x[i];\
    x[0] = y[x[1] \& 63];\
  }'
  for build in cuda gfx90a gfx940; do
    seed local_memory $build embed kernels/ops/embed.cu "$indexed" "bytes of local memory, 0 of them"
    seed local_memory $build attention_decode $decode "$few" "of them for spilt registers"
    seed registers $build embed $record 's/^(embed.*) [0-9]+$/\1 1/' "registers, recorded are 1"
    seed registers $build embed $record '/^embed.*F16/d' "is not in kernels/gates/registers.txt"
    seed registers $build embed $record '/^embed/{p;s/embed/gone/}' "but not compiled"
  done
  local wait='^ *after_previous\(\);'
  local late="/$wait/d; s/^ *const From\* from = .*/&after_previous();/"
  seed waits cuda embed kernels/ops/embed.cu "/$wait/d" "touches memory before it waits"
  seed waits cuda embed kernels/ops/embed.cu "$late" "touches memory before it waits"
  seed registers gfx90a attention_decode $record 's/(scalars_spilt) .*/\1 1/' "scalars_spilt) uses"
}

seed_decode_ptx() {
  local seed="seed decode_ptx cuda attention_decode" piece='PieceWords<Keys::kPieceBytes>'
  local plain="*reinterpret_cast<$piece*>(\1) = *static_cast<const $piece*>(from)"
  local narrow='PieceWords<kBytes> part; for (int i = 0; i < kBytes \/ 4; ++i) '
  narrow+='part.words[i] = reinterpret_cast<const volatile uint32_t*>(from)[i];'
  $seed $decode "$no_product" "of 16 'mma"
  $seed $decode "$barrier" "a block barrier too many"
  $seed $decode "$rolled" "has ld.local"
  $seed kernels/attention/decode_results.cuh 's/#pragma unroll 16/#pragma unroll 1/' "of 16 'ld"
  $seed kernels/device/gpu_cuda.h 's/(kHardwareFp8 = )true/\1false/' "of 64 'cvt"
  $seed kernels/device/gpu_cuda.h 's/asm\("movmatrix.*/b[0] = scores[0];/' "of 2 'movmatrix"
  $seed $queue "s/copy_async<Keys[^>]*>\((key_slot.*), from, valid\)/if (valid) $plain/" "of 16 'cp"
  $seed $queue "s/const auto part = .*/$narrow/" "of 9 'ld"
}

seed_decode_gcn() {
  local build seed narrow='for (int i = 0; i < kBytes \/ 4; ++i) '
  narrow+='part.words[i] = static_cast<const volatile uint32_t*>(from)[i];'
  for build in gfx90a gfx940; do
    seed="seed decode_gcn $build attention_decode"
    $seed $decode "$no_product" "of 16 'v_mfma"
    $seed $decode "$barrier" "a block barrier too many"
    $seed $decode "$rolled" "has scratch accesses"
    $seed kernels/blocks/fragments.cuh 's/(else if constexpr \(F == Fp8Format::)e5m2fnuz/\1e4m3fn/' \
      "of 40 'v_perm_b32'*of 32 'v_and_or_b32'"
    $seed $queue "s/part = \*static_cast<.*;/$narrow/" \
      "of 8 'global_load_dwordx4'*of 8 'global_load_dwordx2'"
    $seed $queue 's/keys = due_keys_;/keys = next_keys_;/' "waits for the next tile's loads"
  done
}

seed_experts() {
  local build experts=kernels/ops/experts.cu
  local twice='s/^( *)multiply\(xs, ups, row, col, up\);/&\n    block_sync();/'
  local once='/^ *multiply\(xs, ups, row, col, up\);/d'
  local slow='s/^( *sums\[i\]\[j\] = fused\()xs\[/\1static_cast<const volatile float*>(xs)[/'
  seed experts_ptx cuda experts $experts "$once" "of 96 'fma"
  seed experts_ptx cuda experts $experts "$slow" "of 6 'ld"
  seed experts_ptx cuda experts $experts "$twice" "a block barrier too many"
  for build in gfx90a gfx940; do
    seed experts_gcn $build experts $experts "$once" "of 256 'v_pk_fma"
    seed experts_gcn $build experts $experts "$twice" "a block barrier too many"
  done
}

self_test() {
  make_base "$work/base"
  mkdir "$work/out"
  local name build
  for name in attention_decode embed experts; do
    for build in $(builds); do in_parallel compile "$build" "$work/base" "$work/out" $name; done
  done
  wait
  seed_all_kernels
  seed_decode_ptx
  seed_decode_gcn
  seed_experts
  wait
  ! compgen -G "$work/seed.*" > /dev/null || not_as_expected "a seed did not come to its end"
  # Unbroken code must pass: no gate may complain of the narrowed copy itself.
  all_gates "$work/base" "$work/out" > "$work/said"
  [[ ! -s $work/said ]] || not_as_expected "without a seed: $(< "$work/said")"
  [[ ! -e $work/unexpected ]]
}
