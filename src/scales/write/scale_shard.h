// The shard of scales that a folder gets: which tensors, under which names, as bytes, and the index
// that lists them. Writes nothing.
#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/scales.h"

namespace fp8kv {

// The new shard. Sorts behind model-00001-of-..., so that readers who take the model's dtype from
// the first shard still see weights, and avoids "args" and "training", which TGI leaves out.
inline constexpr const char* kScaleShard = "model-kv-scales.safetensors";

// The names around a layer's number: "model.layers." and "self_attn.", "transformer.h." and
// "attn.".
struct AttentionName {
  std::string stack;  // before the layer's number
  std::string block;  // behind it
  auto operator<=>(const AttentionName&) const = default;

  std::string at(size_t layer) const;
};

// The one stack of layers with a K projection wherever there are scales to put. Throws where there
// is none, or more than one.
AttentionName attention_of(const Checkpoint& checkpoint, const KvScales& scales);

struct ScaleToWrite {
  std::string name;
  std::vector<float> values;  // one, or one per KV head
};

// Which tensors a layer gets.
struct Naming {
  bool fused = false;        // kv_scale
  bool apart = false;        // k_scale and v_scale
  bool parameters = false;   // attn.k_scale and attn.v_scale
  bool projections = false;  // k_proj.k_scale and v_proj.v_scale

  bool tells_k_from_v() const { return apart || parameters || projections; }
};

// In the order of layers; none for those without a cache.
std::vector<ScaleToWrite> scales_to_write(const KvScales& scales, const AttentionName& attention,
                                          const Naming& naming);

// One number has the shape `shape_of_one`, several have [n_kv_heads, 1, 1]. `evidence` is the
// scale file that goes into the metadata, or "".
std::string shard_bytes(const std::vector<ScaleToWrite>& scales, const Shape& shape_of_one,
                        const Provenance& from, const std::string& evidence);

// The files that a patch changes beside the shard of scales.
struct IndexChanges {
  std::vector<std::string> dropped;            // tensors of the checkpoint that do not come along
  std::map<std::string, std::string> renamed;  // files that come along under another name
};

// In the format of Hugging Face's writers: names in order, two spaces, a newline at the end.
std::string index_text(const Checkpoint& checkpoint, const IndexChanges& changes,
                       const std::vector<ScaleToWrite>& scales);

}  // namespace fp8kv
