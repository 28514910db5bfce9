// The names that kernels use, the same for every toolchain. Only this header and the gpu_*.h which
// it includes know a toolchain. FP8KV_GPU is the build's name (cuda, hip, sim32, sim64) and the
// namespace of everything in it, so that two builds can be linked into one test.
//
// Every build has, for kernels:
//   kWarp                         lanes of a warp: 32 or 64
//   kMostSharedBytes              per block, on every device that this build is for
//   kLoneWarps                    in decode attention, up to so many warps per multiprocessor get a
//                                 block each, to read further ahead; more of them share blocks
//   thread_index() lane_index() warp_index()
//   block_index() grid_size()     each with .x, .y and .z
//   block_sync() warp_sync()      barriers for all threads of the block, all lanes of the warp
//   warp_xor(v, mask)             v of lane (own ^ mask);   warp_from(v, lane)   v of one lane
//   warp_ballot(bool)             64 bits, one per lane
//   warp_uniform(v)               v, which all lanes share; in a scalar register if the device has
//                                 these
//   atomic_max(p, v) atomic_add(p, v)  64 bits, relaxed
//   shared_add(p, v)              32 bits
//   Shared().take<T>(n)           the next piece of the block's shared memory
//   fused(a, b, c)                a * b + c, rounded once; nothing else is ever contracted
//   exp2_fast(x) reciprocal_fast(x)    within 2^-22 and 2^-23 of x; subnormal results may be 0
//   exp_exact(x) rsqrt_exact(x) tanh_exact(x) erf_exact(x) log1p_exact(x)
//   f16_code(x) bf16_code(x) f16_value(code)        equal to core/numbers/half.h except for NaN's
//   bits bf16_codes(first, second)     two of them in a word, the first in its low half
//   select_bytes(low, high, sel)  four of eight bytes, a nibble of `sel` each
//   after_previous()              every kernel calls it first: waits for the previous kernel, which
//                                 may still run, and lets the next one start. Before this call,
//                                 only prefetch may touch memory
//   kProductsFlush                matrix products flush subnormal f16 and bf16 to 0 (gfx90a)
//   scaled_pair<k>(pair)          two f16 times 2^k, exactly, subnormals too; if kProductsFlush
//   prefetch(global)              a hint that this line of memory is needed soon
//   copy_async<bytes, line>(shared, global, valid), async_commit(), async_wait<groups_left>()
//                                 copies 16, 8 or 4 bytes while the lane goes on, if kHasAsync;
//                                 otherwise at once. With `line` L2 loads the whole line of 128
//                                 bytes: other copies soon ask for the rest
//   Mma                           a 16 x kCols x 16 matrix product by a warp
// if kHardwareFp8:
//   convert_e4m3(codes, pairs)    four e4m3fn codes to two pairs of f16
//   encode_fp8<F>(first, second)  codes of e4m3fn or e5m2, equal to fp8_encode but for NaN's sign
// and for hosts:
//   launch(name, kernel, grid, threads, shared_bytes, stream, arguments...)
//   submit(name, stream, work)    work that a library submits by itself
//   has_gemm_library()            whether the device may have such a library
//   Device (device.h)             memory and copies
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/numbers/dtype.h"
#include "core/numbers/fp8.h"
#include "core/numbers/half.h"

#if defined(__CUDACC__)
#include "kernels/device/gpu_cuda.h"
#elif defined(__HIPCC__)
#include "kernels/device/gpu_hip.h"
#else
#include "kernels/device/gpu_sim.h"
#endif
