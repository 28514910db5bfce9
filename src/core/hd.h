// FP8KV_HD marks arithmetic that host and device share: the same source, the same bits.
#pragma once

#if defined(__CUDACC__) || defined(__HIPCC__)
#define FP8KV_HD __host__ __device__ __forceinline__
#else
#define FP8KV_HD inline
#endif
