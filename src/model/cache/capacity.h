// Plans a KV cache by plain arithmetic: its cost, and what fits. Nothing is measured: it reads no
// weight and asks no device.
//
// A sequence of C tokens holds min(C, window) tokens in a layer with a window, and C in other
// layers. A decode step of B such sequences reads every weight once, except an embedding that is
// not also the output matrix. It also reads the whole cache and all states of each sequence. A
// memory-bound step takes that many bytes over the bandwidth. The plan reserves nothing for
// activations, the runtime, or the unfilled part of a sequence's last page.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/model/model_description.h"
#include "core/model/packed_formats.h"

namespace fp8kv {

// Bytes of the whole model's weights, from the headers of its shards.
struct WeightBytes {
  uint64_t all = 0;
  uint64_t read = 0;     // by a decode step; excludes tables of n-grams, and an embedding that is
                         // not also the output
  bool experts = false;  // a step reads only the experts of its tokens, but `read` counts all
};
WeightBytes weight_bytes(const Checkpoint& checkpoint);

struct Deployment {
  uint64_t memory = 0;  // bytes of each GPU; 0: not given
  int64_t tp = 1;       // GPUs that share the model
  int64_t batch = 1;    // sequences in a step
  int64_t context = 0;  // tokens in a sequence
};

// KV heads that one of `tp` GPUs holds, for the layer with most: its share, or one if there are
// more GPUs than heads. Throws a usage Error if heads cannot be shared evenly.
// REQUIRES a layer with a cache, and `tp` of at least 1.
int64_t kv_heads_per_gpu(const ModelDescription& model, int64_t tp);

// The bytes of K and V of one token in layer `layer`, in `heads` of its KV heads.
using TokenBytes = std::function<uint64_t(int64_t layer, int64_t heads)>;
// For a cache that this program computes with. The model must outlive the result.
TokenBytes token_bytes(const ModelDescription& model, ModelCache cache);
// For a format of a runtime, except for the layers `left`, which use `left_in`. REQUIRES layers
// that fit the format.
TokenBytes token_bytes(const ModelDescription& model, const PackedFormat& format,
                       std::vector<int64_t> left, const CacheType& left_in);

// Numbers of each GPU.
struct CachePlan {
  std::string name;                 // names the cache for people
  uint64_t bytes_per_token = 0;     // while no window is full
  uint64_t bytes_per_sequence = 0;  // with its states
  uint64_t state_bytes = 0;         // part of it that no cache dtype changes
  uint64_t free_bytes = 0;  // memory left by the weights; this and the next two: 0 if memory is 0
  uint64_t sequences = 0;   // that fit
  uint64_t tokens = 0;      // in sequences of that length, and in a part of one more
  uint64_t step_bytes = 0;
  double gain = 1;  // bytes of a step with `baseline` over those of a step with `cache`
};

// Throws like kv_heads_per_gpu, and if a size exceeds 2^63, which no model reaches. REQUIRES known
// layers, one of them with a cache; batch, context and tp of at least 1.
CachePlan plan_cache(const ModelDescription& model, const WeightBytes& weights,
                     const Deployment& deployment, const TokenBytes& cache,
                     const TokenBytes& baseline);

}  // namespace fp8kv
