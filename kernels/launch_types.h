// Views of the device's memory that launches take.
#pragma once

#include "core/model/quantised_matrix.h"
#include "kernels/device/gpu.h"

namespace fp8kv::FP8KV_GPU {

// A matrix of elements of type `dtype`.
struct Matrix {
  void* data = nullptr;
  DType dtype = DType::f32;
  int64_t rows = 0;
  int64_t cols = 0;
};

struct ConstMatrix {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t rows = 0;
  int64_t cols = 0;
};

// See Batch.
struct Rows {
  const int32_t* positions = nullptr;   // [n]
  const int32_t* slots = nullptr;       // [n]
  const int32_t* indptr = nullptr;      // [n_seqs + 1]
  const int32_t* page_table = nullptr;  // [n_seqs, max_pages]
  int32_t n = 0;
  int32_t n_seqs = 0;
  int32_t max_pages = 0;
};

}  // namespace fp8kv::FP8KV_GPU
