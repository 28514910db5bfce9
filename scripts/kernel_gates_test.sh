# shellcheck shell=bash disable=SC2154
# Breaks copies of the kernels, one thing at a time, to see the gates of kernel_gates.sh complain;
# sourced by check_kernels.sh --self-test.

not_as_expected() {
  echo "check_kernels: self-test: $*" | tee -a "$work/unexpected"
}

# An edit that changes nothing would test nothing.
edit() {
  local root=$1 file=$2 script=$3
  cp "$root/$file" "$root/before"
  sed -i -E "$script" "$root/$file"
  ! cmp -s "$root/before" "$root/$file" || not_as_expected "sed finds nothing in $file: $script"
}

# A copy to break: of the decode kernel, only what the gates look at, which compiles in seconds.
make_base() {
  local root=$1 decode=kernels/attention_decode.cu
  mkdir "$root"
  cp -r kernels src "$root"
  edit "$root" $decode 's/run<Cache, (64|96|256)>/run<Cache, 128>/'
  edit "$root" $decode 's/if constexpr \(sizeof\(Cache\) <= 2\)/if constexpr (std::is_same_v<Cache, Fp8<Fp8Format::e4m3fn>>)/'
  edit "$root" kernels/registers.txt '/^#|^embed_kernel|attention_decode_kernel.*FormatE0EEELi128E/!d'
}

# Breaks a copy by `script`, compiles one source of it in one build and expects `complaint` of the
# gate.   seed <gate> <build> <source> <file> <script> <complaint>
seed() {
  local gate=$1 build=$2 source=$3 file=$4 script=$5 complaint=$6 root said
  builds | grep -qx "$build" || return 0
  root=$(mktemp -d "$work/seed.XXXXXX")
  cp -r "$work/base/." "$root"
  edit "$root" "$file" "$script"
  mkdir "$root/out"
  compile "$build" "$root" "$root/out" "$source"
  [[ $gate == compiles ]] || said=$(gate_compiles "$root" "$root/out")
  said+=$("gate_$gate" "$root" "$root/out")
  [[ $said == *"$complaint"* ]] ||
    not_as_expected "the gate '$gate' does not say '$complaint' ($build, $file, $script)${said:+ but: $said}"
  rm -r "$root"
}

seed_all() {
  local decode=kernels/attention_decode.cu queue=kernels/lane_queue.cuh build
  local array='$a __global__ void seeded_kernel(int* x) { int y[64]; for (int i = 0; i < 64; ++i) y[i] = i * x[i]; x[0] = y[x[1] \& 63]; }'
  local few='s/(__launch_bounds__\(kThreads, )\(.*\)\)$/\18)/'
  local no_product='/Mma::run<T>\(scores, a, query_/d'
  local barrier='s/^ *queue_\.turn\(\);/&block_sync();/'
  local rolled='s/#pragma unroll$/#pragma unroll 1/'
  for build in cuda gfx90a gfx940 hip_host; do
    in_parallel seed compiles $build embed kernels/embed.cu '$a #error seeded' "embed.cu does not compile for $build"
  done
  for build in cuda gfx90a gfx940; do
    in_parallel seed local_memory $build embed kernels/embed.cu "$array" "bytes of local memory, 0 of them"
    in_parallel seed local_memory $build attention_decode $decode "$few" "for spilt registers"
    in_parallel seed registers $build embed kernels/registers.txt 's/^(embed.*) [0-9]+$/\1 1/' "registers, recorded are 1"
    in_parallel seed registers $build embed kernels/registers.txt '/^embed.*F16/d' "is not in kernels/registers.txt"
    in_parallel seed registers $build embed kernels/registers.txt '/^embed/{p;s/embed/gone/}' "but not compiled"
  done
  in_parallel seed registers gfx90a attention_decode kernels/registers.txt 's/(scalars_spilt) .*/\1 1/' "scalars_spilt) uses"

  in_parallel seed decode_ptx cuda attention_decode $decode "$no_product" "of 16 'mma"
  in_parallel seed decode_ptx cuda attention_decode $decode "$barrier" "a block barrier too many"
  in_parallel seed decode_ptx cuda attention_decode $decode "$rolled" "has ld.local"
  in_parallel seed decode_ptx cuda attention_decode kernels/gpu_cuda.h 's/(kHardwareE4m3 = )true/\1false/' "of 64 'cvt"
  in_parallel seed decode_ptx cuda attention_decode kernels/gpu_cuda.h 's/asm\("movmatrix.*/b[0] = scores[0];/' "of 2 'movmatrix"
  in_parallel seed decode_ptx cuda attention_decode $queue \
    's/copy_async<(Keys::kPieceBytes)>\((.*), from, valid\);/if (valid) *reinterpret_cast<PieceWords<\1>*>(\2) = *static_cast<const PieceWords<\1>*>(from);/' \
    "of 32 'cp"
  in_parallel seed decode_ptx cuda attention_decode $queue \
    's/const auto part = \*(reinterpret_cast<const) .*;/PieceWords<kBytes> part; for (int i = 0; i < kBytes \/ 4; ++i) part.words[i] = \1 volatile uint32_t*>(from)[i];/' \
    "of 9 'ld"

  for build in gfx90a gfx940; do
    in_parallel seed decode_gcn $build attention_decode $decode "$no_product" "of 16 'v_mfma"
    in_parallel seed decode_gcn $build attention_decode $decode "$barrier" "a block barrier too many"
    in_parallel seed decode_gcn $build attention_decode $decode "$rolled" "has scratch accesses"
    in_parallel seed decode_gcn $build attention_decode kernels/fragments.cuh 's/(else if constexpr \(F == Fp8Format::)e5m2fnuz/\1e4m3fn/' "of 32 'v_and_or"
    in_parallel seed decode_gcn $build attention_decode $queue \
      's/part = \*static_cast<.*;/for (int i = 0; i < kBytes \/ 4; ++i) part.words[i] = static_cast<const volatile uint32_t*>(from)[i];/' \
      "of 4 'global_load_dwordx4"
    in_parallel seed decode_gcn $build attention_decode $queue 's/keys = due_keys_;/keys = next_keys_;/' "waits for the next tile's loads"
  done
  wait
}

self_test() {
  local build source
  make_base "$work/base"
  seed_all
  # What is not broken passes: no gate complained of the narrowed copy itself.
  mkdir "$work/base/out"
  for source in attention_decode embed; do
    for build in $(builds); do
      in_parallel compile "$build" "$work/base" "$work/base/out" "$source"
    done
  done
  wait
  for gate in compiles local_memory registers decode_ptx decode_gcn; do
    "gate_$gate" "$work/base" "$work/base/out"
  done > "$work/said"
  [[ ! -s $work/said ]] || not_as_expected "without a seed: $(< "$work/said")"
  [[ ! -e $work/unexpected ]]
}
