// Stores rows that are not elements of one type, or V narrower than K, after rope_append has
// rotated and rounded Q, K and V.
#include "kernels/blocks/kv_rows.cuh"
#include "kernels/blocks/reduce.cuh"
#include "kernels/blocks/rope.cuh"
#include "kernels/launch_attention.h"

namespace fp8kv::FP8KV_GPU {
namespace {

constexpr int kWarps = 4;

// The elements of the longer of a row of K and a row of V.
FP8KV_HD int most_elements(const PagedKv& kv) {
  return kv.v_dim() > kv.head_dim ? kv.v_dim() : kv.head_dim;
}

// One warp per row, KV head, and K or V. For latents, whose K and V share a row, one warp per row.
// Lanes take the row's parts in turn.
template <typename T>
__global__ void append_rows_kernel(RopeArguments arguments) {
  after_previous();
  Shared shared;
  const PagedKv& kv = arguments.kv;
  const int most = most_elements(kv);
  float* x = shared.take<float>(kWarps * most) + warp_index() * most;
  const int pools = kv.v_in_k > 0 ? 1 : 2;
  const int64_t item = static_cast<int64_t>(block_index().x) * kWarps + warp_index();
  if (item >= static_cast<int64_t>(arguments.rows.n) * kv.n_kv_heads * pools) return;
  const bool is_key = item % pools == 0;
  const auto head = static_cast<int>(item / pools % kv.n_kv_heads);
  const int64_t token = item / pools / kv.n_kv_heads;
  const KvRow row = is_key ? kv.k_row() : kv.v_row();
  const int64_t place = token * kv.n_kv_heads + head;
  const T* k = static_cast<const T*>(arguments.k) + place * arguments.k_dim;
  const T* v = static_cast<const T*>(arguments.v) + place * arguments.v_dim;
  for (int d = lane_index(); d < row.dim; d += kWarp) {
    const bool of_v = !is_key || d >= arguments.k_dim;
    x[d] = of_v ? v[is_key ? d - arguments.k_dim : d].value() : k[d].value();
    round_all<1>(x + d, arguments.round_to);
  }
  warp_sync();
  if (kv_spec(row.format).rotated) {
    hadamard_by_warp(x, row.dim, false);
    for (int d = lane_index(); d < row.dim; d += kWarp) round_all<1>(x + d, arguments.round_to);
    warp_sync();
  }
  const int slot = arguments.rows.slots[token];
  uint8_t* to = static_cast<uint8_t*>(is_key ? kv.k : kv.v) +
                kv.row(slot / kv.page_size, head, slot % kv.page_size) * row.bytes();
  const float stored = stored_scale<AnyRow>(is_key ? kv.k_scale : kv.v_scale, head);
  // Elements of one type, for the K or V of a mixed cache.
  in_kernel_with_elements(row.format, [&]<typename Element>(Element) {
    for (int d = lane_index(); d < row.dim; d += kWarp) {
      reinterpret_cast<Element*>(to)[d] = Element::of(kIsFp8<Element> ? x[d] / stored : x[d]);
    }
  });
  if (kv_spec(row.format).in_elements()) return;
  const auto value = [x](int32_t i) { return x[i]; };
  for (int part = lane_index(); part < row.parts(); part += kWarp) {
    encode_part(row, part, value, stored, to);
  }
}

}  // namespace

void append_rows(Stream stream, DType activations, const RopeArguments& arguments) {
  with_compute_type(activations, [&]<typename T>(T) {
    const PagedKv& kv = arguments.kv;
    const int64_t items = int64_t{arguments.rows.n} * kv.n_kv_heads * (kv.v_in_k > 0 ? 1 : 2);
    launch("rope_append", append_rows_kernel<T>,
           {static_cast<unsigned>((items + kWarps - 1) / kWarps)}, kWarps * kWarp,
           static_cast<size_t>(kWarps * most_elements(kv)) * sizeof(float), stream, arguments);
  });
}

}  // namespace fp8kv::FP8KV_GPU
