#include "model/kv_cache.h"

#include <cstdint>

#include "base/error.h"

namespace fp8kv {
namespace {

// One value per KV head, whatever the granularity of the scales.
std::vector<float> broadcast(const std::vector<float>& scales, int32_t n_kv_heads) {
  if (scales.size() == 1) return std::vector<float>(static_cast<size_t>(n_kv_heads), scales[0]);
  FP8KV_ASSERT(scales.size() == static_cast<size_t>(n_kv_heads));
  return scales;
}

Tensor to_backend(Backend& backend, const std::vector<float>& values) {
  const Shape shape{static_cast<int64_t>(values.size())};
  Tensor tensor = backend.allocate(DType::f32, shape);
  backend.copy_in(tensor.view(),
                  {reinterpret_cast<const std::byte*>(values.data()), DType::f32, shape});
  return tensor;
}

}  // namespace

KvCache::KvCache(Backend& backend, const ModelConfig& config, const KvCacheOptions& options,
                 const KvScales* scales)
    : backend_(backend),
      options_(options),
      n_kv_heads_(static_cast<int32_t>(config.n_kv_heads())),
      head_dim_(static_cast<int32_t>(config.head_dim())),
      pool_(options.n_pages, kPageSize) {
  const int64_t all_pages = options.n_pages + options.padding_pages;
  // Slots are 32 bits wide.
  FP8KV_ASSERT(all_pages <= kMostPages);
  const std::optional<Fp8Format> format = fp8_format(options.dtype);
  FP8KV_ASSERT(!scales || (format && scales->format == *format));
  const Shape pool{all_pages, n_kv_heads_, kPageSize, head_dim_};
  const std::string what =
      cat("KV cache of ", count_of(static_cast<uint64_t>(options.n_pages), "page"), ", ",
          grouped(static_cast<uint64_t>(options.n_pages * kPageSize)), " tokens");
  const auto add_layer = [&](size_t layer) {
    k_.push_back(backend.allocate(options.dtype, pool));
    v_.push_back(backend.allocate(options.dtype, pool));
    bytes_ += k_.back().view().bytes() + v_.back().view().bytes();
    if (!format) return;
    const std::vector<float> ones(static_cast<size_t>(n_kv_heads_), 1.0f);
    const LayerScales& of_layer = scales ? scales->layers[layer] : LayerScales{ones, ones};
    k_scale_.push_back(to_backend(backend, broadcast(of_layer.k, n_kv_heads_)));
    v_scale_.push_back(to_backend(backend, broadcast(of_layer.v, n_kv_heads_)));
  };
  for (int64_t layer = 0; layer < options.n_layers; ++layer) {
    with_context(what, [&] { add_layer(static_cast<size_t>(layer)); });
  }
}

PagedKv KvCache::layer(int64_t index) const {
  const auto i = static_cast<size_t>(index);
  PagedKv kv;
  kv.k = k_[i].view().data;
  kv.v = v_[i].view().data;
  if (!k_scale_.empty()) {
    kv.k_scale = k_scale_[i].view().as<const float>();
    kv.v_scale = v_scale_[i].view().as<const float>();
  }
  kv.dtype = options_.dtype;
  kv.page_size = kPageSize;
  kv.n_kv_heads = n_kv_heads_;
  kv.head_dim = head_dim_;
  return kv;
}

bool KvCache::extend(Sequence& sequence, int64_t tokens) {
  const int64_t needed = pages_for(sequence.tokens + tokens);
  const int64_t missing = needed - static_cast<int64_t>(sequence.pages.size());
  if (missing > free_pages()) return false;
  for (int64_t i = 0; i < missing; ++i) sequence.pages.push_back(pool_.take());
  sequence.tokens += tokens;
  return true;
}

bool KvCache::admit(Sequence& sequence, std::span<const int32_t> prompt, int64_t max_tokens,
                    bool share) {
  FP8KV_ASSERT(sequence.pages.empty() && !prompt.empty());
  if (share) sequence.pages = pool_.find(prompt.first(prompt.size() - 1));
  for (const int32_t page : sequence.pages) pool_.share(page);
  const auto shared = static_cast<int64_t>(sequence.pages.size());
  const int64_t missing = pages_for(max_tokens) - shared;
  if (missing > free_pages()) {
    release(sequence);
    return false;
  }
  for (int64_t i = 0; i < missing; ++i) sequence.pages.push_back(pool_.take());
  sequence.tokens = shared * kPageSize;
  if (share) pool_.publish(prompt, sequence.pages);
  return true;
}

int32_t KvCache::slot(const Sequence& sequence, int64_t position) {
  const auto page = static_cast<size_t>(position / kPageSize);
  return sequence.pages[page] * kPageSize + static_cast<int32_t>(position % kPageSize);
}

// The last page first: what is kept to be shared is worth less the later it comes.
void KvCache::release(Sequence& sequence) {
  while (!sequence.pages.empty()) {
    pool_.release(sequence.pages.back());
    sequence.pages.pop_back();
  }
  sequence = {};
}

}  // namespace fp8kv
