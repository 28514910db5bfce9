// FP8KV_HD marks arithmetic that host and device share: the same source, the same bits.
#pragma once

#if defined(__CUDACC__)
#define FP8KV_HD __host__ __device__ __forceinline__
#elif defined(__HIPCC__)  // HIP defines __forceinline__ in a header that core must not include
#define FP8KV_HD __host__ __device__ inline __attribute__((always_inline))
#else
#define FP8KV_HD inline
#endif
