// What a KV cache costs and what fits, in plain arithmetic: no weight is read, no device asked,
// nothing measured.
//
// A sequence of C tokens holds min(C, window) tokens in a layer with a window, C in the others. A
// decode step of B such sequences reads once every weight, but no embedding that has an output
// matrix beside it, and the whole cache and all states of each sequence; a step that is bound by
// memory takes that many bytes over the bandwidth. Nothing is set aside for activations, the
// runtime, and the part of a page that a sequence does not fill.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/model_description.h"
#include "core/packed_formats.h"

namespace fp8kv {

// Of the whole model, from the headers of its shards.
struct WeightBytes {
  uint64_t all = 0;
  uint64_t read = 0;     // in a decode step: without an embedding that is not the output matrix too
  bool experts = false;  // a step reads only those that its tokens are sent to; counted are all
};
WeightBytes weight_bytes(const Checkpoint& checkpoint);

struct Deployment {
  uint64_t memory = 0;  // bytes of each GPU; 0: not given
  int64_t tp = 1;       // GPUs that share the model
  int64_t batch = 1;    // sequences in a step
  int64_t context = 0;  // tokens in a sequence
};

// KV heads that one of `tp` GPUs holds of the layer with most: a share of them, or one each where
// there are more GPUs. Throws a usage Error when they cannot be shared out evenly.
// REQUIRES a layer with a cache, and `tp` of at least 1.
int64_t kv_heads_per_gpu(const ModelDescription& model, int64_t tp);

// The bytes of K and V of one token in layer `layer`, in `heads` of its KV heads.
using TokenBytes = std::function<uint64_t(int64_t layer, int64_t heads)>;
// In a cache that is computed here. The model must outlive what is returned.
TokenBytes token_bytes(const ModelDescription& model, ModelCache cache);
// In one that is not, but for the layers `left`, which are in `left_in`. REQUIRES layers that fit.
TokenBytes token_bytes(const ModelDescription& model, const PackedFormat& format,
                       std::vector<int64_t> left, const CacheType& left_in);

// On each GPU.
struct CachePlan {
  std::string name;                 // of the cache, for people
  uint64_t bytes_per_token = 0;     // while no window is full
  uint64_t bytes_per_sequence = 0;  // with its states
  uint64_t state_bytes = 0;         // of these, what no cache's dtype changes
  uint64_t free_bytes = 0;  // memory that the weights leave; this and the next two 0 without memory
  uint64_t sequences = 0;   // that fit
  uint64_t tokens = 0;      // that fit, in sequences of that length
  uint64_t step_bytes = 0;
  double gain = 1;  // of bytes in a step, over a cache in `baseline`
};

// Throws as kv_heads_per_gpu, and when a size passes 2^63, which no model does. REQUIRES known
// layers, one of them with a cache; batch, context and tp of at least 1.
CachePlan plan_cache(const ModelDescription& model, const WeightBytes& weights,
                     const Deployment& deployment, const TokenBytes& cache,
                     const TokenBytes& baseline);

}  // namespace fp8kv
