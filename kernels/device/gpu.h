// What kernels are written with, whatever the toolchain: this header and the gpu_*.h it includes
// are the only places that know one. FP8KV_GPU is the build's name (cuda, hip, sim32, sim64) and
// the namespace everything lives in, so that two builds can be linked into one test.
//
// Every build has, for kernels:
//   kWarp                         lanes of a warp: 32 or 64
//   kMostSharedBytes              of a block, on every device that this build is for
//   thread_index() lane_index() warp_index()
//   block_index() grid_size()     each with .x, .y and .z
//   block_sync() warp_sync()      barriers for all threads of the block, all lanes of the warp
//   warp_xor(v, mask)             v of lane (own ^ mask);   warp_from(v, lane)   v of one lane
//   warp_ballot(bool)             64 bits, one per lane
//   warp_uniform(v)               v, which is the same in all lanes; kept in scalar registers where
//                                 the device has them
//   atomic_max(p, v) atomic_add(p, v)  64 bits, relaxed
//   shared_add(p, v)              32 bits
//   take_ticket(p)                counts up; orders all memory before and after across the device
//   Shared().take<T>(n)           pieces of the block's shared memory, in the order of asking
//   fused(a, b, c)                a * b + c, rounded once; nothing else is ever contracted
//   exp2_fast(x) exp_exact(x) rsqrt_exact(x) tanh_exact(x) erf_exact(x) log1p_exact(x)
//   f16_code(x) bf16_code(x) f16_value(code)        equal to core/half.h but for the bits of a NaN
//   bf16_codes(first, second)     two of them in a word, the first in its low half
//   select_bytes(low, high, sel)  four of eight bytes, a nibble of `sel` each
//   after_previous()              called first in every kernel: waits for the kernel before, which
//                                 may still run, and lets the next kernel start. Only prefetch may
//                                 touch memory before this call
//   kProductsFlush                matrix products take subnormal f16 and bf16 for 0 (gfx90a)
//   scaled_pair<k>(pair)          two f16 times 2^k, exactly, subnormals too; where kProductsFlush
//   prefetch(global)              a hint that this line of memory is wanted soon
//   copy_async<bytes>(shared, global, valid), async_commit(), async_wait<groups_left>()
//                                 16, 8 or 4 bytes on their way while the lane goes on, where
//                                 kHasAsync; at once otherwise
//   Mma                           a 16 x kCols x 16 matrix product by a warp
// where kHardwareFp8:
//   convert_e4m3(codes, pairs)    four e4m3fn codes to two pairs of f16
//   encode_fp8<F>(first, second)  codes of e4m3fn or e5m2, as fp8_encode but for the sign of a NaN
// and for hosts:
//   launch(name, kernel, grid, threads, shared_bytes, stream, arguments...)
//   submit(name, stream, work)    work that a library submits by itself
//   kHasGemmLibrary               whether there may be such a library
//   Device (device.h)             memory and copies
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"
#include "core/fp8.h"
#include "core/half.h"

#if defined(__CUDACC__)
#include "kernels/device/gpu_cuda.h"
#elif defined(__HIPCC__)
#include "kernels/device/gpu_hip.h"
#else
#include "kernels/device/gpu_sim.h"
#endif
