#include "backend/cpu/attention/cpu_append_pooled.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/error.h"

namespace fp8kv {
namespace {

struct Pooling {
  const CpuKernels& kernels;
  const PooledAppend& args;
  DType element;
  int64_t dim;
  std::vector<float> weights;      // [dim], with the norm's offset
  std::vector<int64_t> sequences;  // of each row

  void round(float* x) const {
    if (args.round_to == DType::f16) kernels.round_f16(x, dim);
    if (args.round_to == DType::bf16) kernels.round_bf16(x, dim);
  }

  std::byte* place(int64_t page, int64_t in_page) const {
    const auto bytes = static_cast<int64_t>(dtype_bytes(element));
    return static_cast<std::byte*>(args.keys.k) + args.keys.offset(page, 0, in_page) * bytes;
  }

  // The key of the token `back` before a row, which this step or an earlier one has.
  void load(int64_t row, int64_t back, float* to) const {
    const auto at = static_cast<size_t>(row);
    if (row - back >= args.batch.indptr.as<int32_t>()[sequences[at]]) {
      std::copy_n(args.k.as<float>() + (row - back) * dim, dim, to);
      return round(to);
    }
    const int64_t position = args.batch.positions.as<int32_t>()[row] - back;
    const int32_t* const pages =
        args.batch.page_table.as<int32_t>() + sequences[at] * args.batch.page_table.shape[1];
    kernels.to_float[element](
        place(pages[position / args.keys.page_size], position % args.keys.page_size), dim, to);
  }

  // key = the key of the block that the row ends; `own` is memory for one key.
  void pool(int64_t row, float* key, float* own) const {
    std::fill_n(key, dim, 0.0f);
    for (int64_t back = args.block; back-- > 0;) {
      load(row, back, own);
      for (int64_t i = 0; i < dim; ++i) key[i] += own[i];
    }
    for (int64_t i = 0; i < dim; ++i) key[i] /= static_cast<float>(args.block);
    round(key);
    double squares = 0;
    for (int64_t i = 0; i < dim; ++i) squares += double{key[i]} * double{key[i]};
    const auto factor = static_cast<float>(
        1 / std::sqrt(squares / static_cast<double>(dim) + double{args.norm.eps}));
    for (int64_t i = 0; i < dim; ++i) key[i] *= factor * weights[static_cast<size_t>(i)];
    round(key);
    const int64_t first = args.batch.positions.as<int32_t>()[row] + 1 - args.block;
    const int64_t rotary = args.rope.shape[1];
    kernels.rotate(key, args.rope.as<const float>() + first * rotary, static_cast<int>(rotary / 2));
    round(key);
  }

  void store(int64_t row, float* key, float* own) const {
    const int64_t position = args.batch.positions.as<int32_t>()[row];
    if ((position + 1) % args.block == 0) {
      pool(row, key, own);
    } else {
      load(row, 0, key);
    }
    const int64_t slot = args.batch.slots.as<int32_t>()[row];
    kernels.store[element](key, dim, 1.0f,
                           place(slot / args.keys.page_size, slot % args.keys.page_size));
  }
};

}  // namespace

void cpu_append_pooled(const CpuContext& cpu, const PooledAppend& args) {
  const int64_t n = args.k.shape[0], dim = args.k.shape[1];
  FP8KV_ASSERT(args.k.dtype == DType::f32 && args.block > 1 && args.keys.n_kv_heads == 1);
  FP8KV_ASSERT(args.norm.kind == NormKind::rms && args.norm.weight.shape.elements() == dim);
  FP8KV_ASSERT(args.keys.in_elements() && args.keys.head_dim == dim && args.rope.shape[1] <= dim);
  Pooling pooling{cpu.kernels, args, *kv_elements(args.keys.k_format), dim, {}, {}};
  pooling.weights.resize(static_cast<size_t>(dim));
  cpu.kernels.to_float[args.norm.weight.dtype](args.norm.weight.data, dim, pooling.weights.data());
  for (float& weight : pooling.weights) weight += args.norm.weight_offset;
  const auto* const indptr = args.batch.indptr.as<int32_t>();
  for (int64_t s = 0; s + 1 < args.batch.indptr.shape[0]; ++s) {
    pooling.sequences.insert(pooling.sequences.end(),
                             static_cast<size_t>(indptr[s + 1] - indptr[s]), s);
  }
  constexpr int64_t kJobRows = 16;
  cpu.pool.run((n + kJobRows - 1) / kJobRows, [&](int64_t job, int /*thread*/) {
    std::vector<float> memory(static_cast<size_t>(2 * dim));
    for (int64_t row = job * kJobRows; row < std::min(n, (job + 1) * kJobRows); ++row) {
      pooling.store(row, memory.data(), memory.data() + dim);
    }
  });
}

}  // namespace fp8kv
