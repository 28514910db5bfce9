// Measures whether AVX-512 BF16 pays: on some processors its bf16 pairs are twice as fast as F32
// multiply-adds, on others half as fast.
#pragma once

namespace fp8kv {

// Returns the time of one product of a pair, in units of one fused F32 multiply-add: 0.5 on Zen 4
// and 5, 2 on Intel's. Takes the minimum of several rounds, some 10 microseconds in all, so that
// other load does not change the answer. REQUIRES AVX-512 BF16.
double measure_bf16_pairs();

}  // namespace fp8kv
