#include "model/cache/capacity.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "config/architectures.h"
#include "core/model/tensor_row.h"

namespace fp8kv {
namespace {

constexpr uint64_t kMost = uint64_t{1} << 63;

uint64_t product(uint64_t a, uint64_t b) {
  uint64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result) || result > kMost) {
    fail("a cache of ", a, " times ", b, " bytes is larger than can be counted");
  }
  return result;
}

uint64_t sum(uint64_t a, uint64_t b) {
  if (a > kMost - b) fail("a cache of more than 2^63 bytes is larger than can be counted");
  return a + b;
}

uint64_t share(uint64_t bytes, int64_t tp) {
  const auto parts = static_cast<uint64_t>(tp);
  return bytes / parts + (bytes % parts > 0 ? 1 : 0);
}

// KV heads of a layer that one of `tp` GPUs holds; the layer has `n_kv_heads`.
int64_t heads_per_gpu(int64_t n_heads, int64_t n_kv_heads, int64_t tp) {
  FP8KV_ASSERT(tp > 0 && n_kv_heads > 0);
  const auto cannot_share = [&](int64_t heads, const char* which) {
    throw Error(cat(count_of(static_cast<uint64_t>(tp), "GPU"), " cannot share a model with ",
                    heads, " ", which, " heads"),
                "every GPU must get as many heads as every other", ErrorKind::usage);
  };
  if (n_heads % tp != 0) cannot_share(n_heads, "attention");
  const bool shared = tp <= n_kv_heads;
  if (shared ? n_kv_heads % tp != 0 : tp % n_kv_heads != 0) cannot_share(n_kv_heads, "KV");
  return shared ? n_kv_heads / tp : 1;
}

// The sum of a number of bytes over the layers that write a cache. `bytes_of` takes the layer's
// index, its KV heads on one of `tp` GPUs, and how many of `tokens` it keeps.
template <typename BytesOf>
uint64_t of_layers(const ModelDescription& model, int64_t tp, int64_t tokens,
                   const BytesOf& bytes_of) {
  uint64_t bytes = 0;
  for (int64_t i = 0; i < model.n_layers(); ++i) {
    if (!model.writes_cache(i)) continue;
    const LayerDescription& layer = model.layer(i);
    const int64_t kept = layer.reach > 0 ? std::min(tokens, layer.reach) : tokens;
    const int64_t heads = heads_per_gpu(model.n_heads_of(i), layer.n_kv_heads, tp);
    bytes = sum(bytes, bytes_of(i, heads, kept));
  }
  return bytes;
}

// KV bytes of a sequence of `tokens` on one of `tp` GPUs.
uint64_t cache_bytes(const ModelDescription& model, int64_t tp, int64_t tokens,
                     const TokenBytes& cache) {
  return of_layers(model, tp, tokens, [&](int64_t i, int64_t heads, int64_t kept) {
    const auto unended = static_cast<uint64_t>(model.layer(i).unended_bytes());
    return sum(product(cache(i, heads) - unended, static_cast<uint64_t>(kept)),
               product(unended, static_cast<uint64_t>(tokens)));
  });
}

// Bytes of them that a decode step reads: K and V of the tokens that a row sees, and the keys of
// indexers for all.
uint64_t read_bytes(const ModelDescription& model, int64_t tp, int64_t tokens,
                    const TokenBytes& cache) {
  return of_layers(model, tp, tokens, [&](int64_t i, int64_t heads, int64_t kept) {
    const LayerDescription& layer = model.layer(i);
    const auto keys = static_cast<uint64_t>(layer.index_bytes);
    if (layer.one_row) {
      const auto pools = static_cast<uint64_t>(layer.pool_bytes);
      const int64_t pooled = layer.most_seen > 0 ? std::min(tokens, layer.most_seen) : tokens;
      return sum(product(cache(i, heads) - keys - pools, static_cast<uint64_t>(kept)),
                 sum(product(pools, static_cast<uint64_t>(pooled)),
                     product(keys, static_cast<uint64_t>(tokens))));
    }
    const int64_t seen = layer.most_seen > 0 ? std::min(kept, layer.most_seen) : kept;
    return sum(product(cache(i, heads) - keys, static_cast<uint64_t>(seen)),
               product(keys, static_cast<uint64_t>(kept)));
  });
}

// Bytes of a sequence's states, which do not grow with its length.
uint64_t all_state_bytes(const ModelDescription& model, int64_t tp) {
  uint64_t bytes = 0;
  for (const LayerDescription& layer : model.layers) bytes = sum(bytes, layer.state_bytes);
  return share(bytes, tp);
}

uint64_t sequence_bytes(const ModelDescription& model, int64_t tp, int64_t tokens,
                        const TokenBytes& cache) {
  return sum(cache_bytes(model, tp, tokens, cache), all_state_bytes(model, tp));
}

// The last part of a name: "embed_tokens" from "model.embed_tokens".
std::string_view last_part(std::string_view name) {
  return name.substr(name.rfind('.') + 1);
}

// Whether some architecture's table gives this name to the weight of `role`, under any prefix. Also
// knows the name that models without a table use.
bool has_role(std::string_view name, TensorRole role) {
  constexpr std::string_view kWeight = ".weight";
  if (!name.ends_with(kWeight)) return false;
  const std::string_view module = last_part(name.substr(0, name.size() - kWeight.size()));
  for (const Architecture& architecture : architectures()) {
    for (const TensorRow& row : architecture.tensors) {
      if (row.roles.front() == role && last_part(row.name) == module) return true;
    }
  }
  return role == TensorRole::lm_head && module == "embed_out";
}

}  // namespace

WeightBytes weight_bytes(const Checkpoint& checkpoint) {
  WeightBytes bytes;
  uint64_t embedding = 0, ngrams = 0;
  bool has_output = false;
  for (const auto& [name, location] : checkpoint.tensors()) {
    const uint64_t size = location.entry.end - location.entry.begin;
    bytes.all += size;
    if (has_role(name, TensorRole::embedding)) embedding += size;
    if (name.find(".ngram_embedding.") != std::string::npos) ngrams += size;
    bytes.experts |= name.find(".experts.") != std::string::npos;
    has_output |= has_role(name, TensorRole::lm_head);
  }
  bytes.read = bytes.all - (has_output ? embedding : 0) - ngrams;
  return bytes;
}

int64_t kv_heads_per_gpu(const ModelDescription& model, int64_t tp) {
  return heads_per_gpu(model.n_heads, model.n_kv_heads(), tp);
}

TokenBytes token_bytes(const ModelDescription& model, ModelCache cache) {
  return [&model, cache = std::move(cache)](int64_t layer, int64_t heads) {
    return kv_bytes_per_token(model.layer(layer), heads, cache.of(layer));
  };
}

TokenBytes token_bytes(const ModelDescription& model, const PackedFormat& format,
                       std::vector<int64_t> left, const CacheType& left_in) {
  return [&model, &format, left = std::move(left), left_in](int64_t layer, int64_t heads) {
    const LayerDescription& own = model.layer(layer);
    if (std::binary_search(left.begin(), left.end(), layer)) {
      return kv_bytes_per_token(own, heads, left_in);
    }
    return product(format.bytes(own), static_cast<uint64_t>(heads)) +
           static_cast<uint64_t>(own.index_bytes + own.pool_bytes);
  };
}

CachePlan plan_cache(const ModelDescription& model, const WeightBytes& weights,
                     const Deployment& deployment, const TokenBytes& cache,
                     const TokenBytes& baseline) {
  FP8KV_ASSERT(deployment.batch > 0 && deployment.context > 0 && !model.unclear &&
               model.cache_layers() > 0);
  const auto step = [&](const TokenBytes& of) {
    const uint64_t sequence = sum(read_bytes(model, deployment.tp, deployment.context, of),
                                  all_state_bytes(model, deployment.tp));
    return sum(share(weights.read, deployment.tp),
               product(sequence, static_cast<uint64_t>(deployment.batch)));
  };
  CachePlan plan;
  plan.bytes_per_token = cache_bytes(model, deployment.tp, 1, cache);
  plan.bytes_per_sequence = sequence_bytes(model, deployment.tp, deployment.context, cache);
  plan.state_bytes = all_state_bytes(model, deployment.tp);
  plan.step_bytes = step(cache);
  plan.gain = static_cast<double>(step(baseline)) / static_cast<double>(plan.step_bytes);
  const uint64_t weights_here = share(weights.all, deployment.tp);
  if (deployment.memory > weights_here) plan.free_bytes = deployment.memory - weights_here;
  plan.sequences = plan.free_bytes / plan.bytes_per_sequence;
  // Whole sequences, and the tokens of one more that fit beside them.
  const uint64_t rest = plan.free_bytes % plan.bytes_per_sequence;
  int64_t most = deployment.context, least = 0;
  while (least < most) {
    const int64_t middle = least + (most - least + 1) / 2;
    if (sequence_bytes(model, deployment.tp, middle, cache) <= rest) {
      least = middle;
    } else {
      most = middle - 1;
    }
  }
  plan.tokens = sum(product(plan.sequences, static_cast<uint64_t>(deployment.context)),
                    static_cast<uint64_t>(least));
  return plan;
}

}  // namespace fp8kv
