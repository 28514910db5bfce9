// The scale shard of a folder as bytes: its tensors and their names, and the index that lists them.
// Writes nothing.
#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/scales/scales.h"

namespace fp8kv {

// The new shard. Its name sorts behind model-00001-of-..., so readers that take the model's dtype
// from the first shard still see weights. It avoids "args" and "training", which TGI leaves out.
inline constexpr const char* kScaleShard = "model-kv-scales.safetensors";

// The names around a layer's number: "model.layers." and "self_attn.", or "transformer.h." and
// "attn.".
struct AttentionName {
  std::string stack;    // before the layer's number
  std::string block;    // behind the layer's number
  bool paired = false;  // see LayerName
  auto operator<=>(const AttentionName&) const = default;

  std::string at(size_t layer) const;
};

// The names of the one stack of layers that has a K projection in every layer with scales. Throws
// if there is no such stack, or more than one.
AttentionName attention_of(const Checkpoint& checkpoint, const KvScales& scales);

struct ScaleToWrite {
  std::string name;
  std::vector<float> values;  // one, or one per KV head
};

// The tensors that a layer gets.
struct Naming {
  bool fused = false;        // kv_scale
  bool apart = false;        // k_scale and v_scale
  bool parameters = false;   // attn.k_scale and attn.v_scale
  bool projections = false;  // k_proj.k_scale and v_proj.v_scale

  bool tells_k_from_v() const { return apart || parameters || projections; }
};

// Scales in the order of layers; layers without a cache have none.
std::vector<ScaleToWrite> scales_to_write(const KvScales& scales, const AttentionName& attention,
                                          const Naming& naming);

// A single number gets the shape `shape_of_one`, several get [n_kv_heads, 1, 1]. `evidence` is the
// scale file that goes into the metadata, or "".
std::string shard_bytes(const std::vector<ScaleToWrite>& scales, const Shape& shape_of_one,
                        const Provenance& from, const std::string& evidence);

// The changes of a patch beside the scale shard.
struct IndexChanges {
  std::vector<std::string> dropped;  // tensors of the checkpoint that the output leaves out
  std::map<std::string, std::string> renamed;  // files that get another name in the output
};

// Uses the format of Hugging Face's writers: sorted names, two spaces, a newline at the end.
std::string index_text(const Checkpoint& checkpoint, const IndexChanges& changes,
                       const std::vector<ScaleToWrite>& scales);

}  // namespace fp8kv
