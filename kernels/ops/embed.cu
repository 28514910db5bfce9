#include "kernels/blocks/elements.cuh"
#include "kernels/launch_rows.h"
#include "kernels/launch_types.h"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kThreads = 256;

// One block per row of out.
template <typename From, typename To>
__global__ void embed_kernel(const From* table, const int32_t* ids, To* out, int64_t dim) {
  after_previous();
  const int64_t row = block_index().x;
  const From* from = table + ids[row] * dim;
  for (int64_t i = thread_index(); i < dim; i += kThreads) {
    out[row * dim + i] = To::of(from[i].value());
  }
}

}  // namespace

void embed(Stream stream, const ConstMatrix& table, const int32_t* ids, const Matrix& out) {
  with_compute_type(table.dtype, [&]<typename From>(From) {
    with_compute_type(out.dtype, [&]<typename To>(To) {
      launch("embed", embed_kernel<From, To>, {static_cast<unsigned>(out.rows)}, kThreads, 0,
             stream, static_cast<const From*>(table.data), ids, static_cast<To*>(out.data),
             out.cols);
    });
  });
}

}  // namespace fp8kv::FP8KV_GPU
