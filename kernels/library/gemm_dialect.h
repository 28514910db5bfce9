// The parts of cublasLt's and hipBLASLt's C interfaces that are used; they differ only in names and
// numbers. They are declared here, since headers are seldom installed with the libraries. If nvcc
// has cublasLt's header, the numbers are compared with it.
// Sources: cublasLt.h of CUDA 12 and 13, hipblaslt.h of ROCm 6 and 7.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/device/gpu.h"

namespace fp8kv::FP8KV_GPU {

// The called functions, named without their prefix. They return a status, 0 for success. Handles
// and descriptors are opaque; enumerations are passed as int.
struct GemmFunctions {
  int (*Create)(void** handle);
  int (*Destroy)(void* handle);
  int (*MatmulDescCreate)(void** operation, int compute_type, int scale_type);
  int (*MatmulDescDestroy)(void* operation);
  int (*MatmulDescSetAttribute)(void* operation, int attribute, const void* value, size_t bytes);
  int (*MatrixLayoutCreate)(void** layout, int type, uint64_t rows, uint64_t cols, int64_t pitch);
  int (*MatrixLayoutDestroy)(void* layout);
  int (*MatmulPreferenceCreate)(void** preference);
  int (*MatmulPreferenceDestroy)(void* preference);
  int (*MatmulPreferenceSetAttribute)(void* preference, int attribute, const void* value,
                                      size_t bytes);
  int (*MatmulAlgoGetHeuristic)(void* handle, void* operation, void* a, void* b, void* c, void* d,
                                void* preference, int wanted, void* results, int* found);
  int (*Matmul)(void* handle, void* operation, const void* alpha, const void* a, void* a_layout,
                const void* b, void* b_layout, const void* beta, const void* c, void* c_layout,
                void* d, void* d_layout, const void* algorithm, void* workspace,
                size_t workspace_bytes, StreamHandle stream);
};

struct GemmDialect {
  const char* name;
  const char* prefix;
  std::array<const char*, 4> files;  // tried in turn
  int compute_f32;                   // products are added up in f32, without rounding before
  int transposed;                    // the operation on a matrix
  int transpose_a;                   // attributes of an operation
  int epilogue;
  int bias_pointer;
  // Attributes of a preference, or kNoAttribute: which reductions over parts of a sum are allowed,
  // and the least alignment of A, B, C and D.
  int reductions;
  std::array<int, 4> alignments;
};

inline constexpr int kNoAttribute = -1;
// Both libraries use these numbers.
inline constexpr int kEpilogueBias = 4;
inline constexpr int kTypeF32 = 0;
inline constexpr int kTypeF16 = 2;
inline constexpr int kTypeBf16 = 14;

inline constexpr GemmDialect kCublasLt = {
    .name = "cublasLt",
    .prefix = "cublasLt",
    .files = {"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.13",
              "/usr/local/cuda/lib64/libcublasLt.so.12"},
    .compute_f32 = 68,
    .transposed = 1,
    .transpose_a = 3,
    .epilogue = 7,
    .bias_pointer = 8,
    .reductions = 3,
    .alignments = {5, 6, 7, 8},
};

inline constexpr GemmDialect kHipblasLt = {
    .name = "hipBLASLt",
    .prefix = "hipblasLt",
    .files = {"libhipblaslt.so.1", "libhipblaslt.so.0", "/opt/rocm/lib/libhipblaslt.so.1",
              "/opt/rocm/lib/libhipblaslt.so.0"},
    .compute_f32 = 2,
    .transposed = 112,
    .transpose_a = 0,
    .epilogue = 2,
    .bias_pointer = 3,
    .reductions = kNoAttribute,
    .alignments = {kNoAttribute, kNoAttribute, kNoAttribute, kNoAttribute},
};

inline constexpr const GemmDialect& kGemmDialect = kWarp == 32 ? kCublasLt : kHipblasLt;

}  // namespace fp8kv::FP8KV_GPU
