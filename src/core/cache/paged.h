// One layer's paged KV cache, in the form that every append and attention op takes.
#pragma once

#include <cstdint>

#include "core/cache/kv_format.h"
#include "core/numbers/hd.h"

namespace fp8kv {

// A plain value that kernels take by copy.
// K and V are separate pools of [n_pages, n_kv_heads, page_size] rows. A token's slot is page *
// page_size + offset. The two formats define a row (core/cache/kv_format.h).
// Latent attention has one pool: V is the last `v_in_k` elements of each row of K, in the same
// format and with the same scales. In formats of plain elements `v` points at the first of those
// elements, in others `v` equals `k`.
struct PagedKv {
  void* k = nullptr;
  void* v = nullptr;
  const float* k_scale = nullptr;  // [n_kv_heads]; null unless the format has a stored scale
  const float* v_scale = nullptr;  // [n_kv_heads]; null unless the format has a stored scale
  KvFormat k_format = KvFormat::f32;
  KvFormat v_format = KvFormat::f32;
  int32_t page_size = 0;
  int32_t n_kv_heads = 0;
  int32_t head_dim = 0;   // of K
  int32_t v_in_k = 0;     // 0: V has its own pool
  int32_t own_v_dim = 0;  // of V in its own pool; 0: K's size
  // How kernels of other runtimes compute with the cache. The GPU kernels here do not imitate them.
  float q_scale = 0;  // scale that rounds Q to E4M3; softmax weights are rounded too; 0: none
  bool toward_zero = false;  // K and V are rounded to E4M3 towards zero instead of to nearest

  FP8KV_HD int32_t v_dim() const {
    return v_in_k > 0 ? v_in_k : own_v_dim > 0 ? own_v_dim : head_dim;
  }
  // Whether all rows are elements of one type.
  FP8KV_HD bool in_elements() const {
    return k_format == v_format && kv_spec(k_format).in_elements();
  }
  FP8KV_HD bool rotated() const { return kv_spec(k_format).rotated; }

  FP8KV_HD KvRow k_row() const { return {k_format, head_dim, v_in_k}; }
  FP8KV_HD KvRow v_row() const { return v_in_k > 0 ? k_row() : KvRow{v_format, v_dim(), 0}; }

  // The number of the row for (page, head, offset within the page).
  FP8KV_HD int64_t row(int64_t page, int64_t head, int64_t in_page) const {
    return (page * n_kv_heads + head) * page_size + in_page;
  }
  // Elements from a row of V to the next; K's rows have head_dim. REQUIRES in_elements, as does
  // `offset`.
  FP8KV_HD int32_t v_step() const { return v_in_k > 0 ? head_dim : v_dim(); }
  // Index of the first element of a row of K.
  FP8KV_HD int64_t offset(int64_t page, int64_t head, int64_t in_page) const {
    return row(page, head, in_page) * head_dim;
  }
};

}  // namespace fp8kv
