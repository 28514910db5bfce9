// Whether AVX-512 BF16 is worth taking: its products of bf16 pairs are twice as fast as
// multiply-adds of F32 on some processors, and half as fast on others.
#pragma once

namespace fp8kv {

// How long a multiplication of one pair takes here, in multiplications of F32 fused with an
// addition: 0.5 on Zen 4 and 5, 2 on Intel's. The least of several rounds, some 10 microseconds in
// all, so that what else the machine does does not turn the answer. REQUIRES AVX-512 BF16.
double measure_bf16_pairs();

}  // namespace fp8kv
