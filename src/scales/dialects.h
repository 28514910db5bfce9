// How each tool names and means its KV scales: a table, one row each. Which row a tensor is of
// follows from its name and from what the config says. Reads no values.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/quant_config.h"
#include "core/scales.h"

namespace fp8kv {

// What scales are stored in.
enum class Carrier {
  model_folder,  // Hugging Face: model.safetensors, or shards with an index
  rank_folder,   // TensorRT-LLM: rank0.safetensors, ...
  npz_folder,    // AMMO: *_rank0.npz, ...
  json,          // vLLM's kv_cache_scales.json
};

// What a scale is of.
enum class ScaleOf { k, v, both, q };

// One scale tensor's name: anything that ends in "layers.", the layer's number, and `rest`. What is
// called "self_attn" stands for every name of kAttentionNames.
struct ScalePattern {
  std::string rest;  // "self_attn.k_scale"
  ScaleOf of = ScaleOf::k;
};

struct Dialect {
  std::string name;         // "autofp8-kv_scale"
  std::string family;       // "autofp8"
  std::string written_by;   // for people, like the two below
  std::string config_says;  // how the config tells; "" where it need not
  std::string k_measured;
  std::vector<ScalePattern> patterns;
  // Whether a config is of this row, and what it tells of where K was measured.
  bool (*says)(const KvConfig&) = nullptr;
  Observation (*observation)(const KvConfig&) = nullptr;
  Carrier carrier = Carrier::model_folder;
  float floor = 0;     // smaller scales were raised to this; 0 for no
  bool fused = false;  // stores one number for K and again for V
};

std::span<const Dialect> dialects();
// nullptr for a name of no row.
const Dialect* find_dialect(std::string_view name);

// A row's tensors as people read them: {"self_attn.{k,v}_scale"}.
std::vector<std::string> tensor_forms(const Dialect& dialect);

// The rows that have a tensor of this name, and what it is for. `rest` as in LayerName.
struct DialectMatch {
  std::vector<const Dialect*> rows;
  ScaleOf of = ScaleOf::k;
};
DialectMatch match_scale_name(Carrier carrier, std::string_view rest);

// Whether a tensor is an offset that goes with a scale: a zero point, or ModelOpt's k_bias.
bool is_offset(std::string_view name);

// Why a tensor beside the scales is left alone: "scales of the softmax, which is not cached";
// nullptr for one that has nothing to do with them. Scales of Q by names that runtimes read are
// none of these.
const char* why_ignored(std::string_view rest);

// Whether a name is a KV scale of some tool, in a form that no row describes. Weight and input
// scales of quantised projections (k_proj.weight_scale) are not.
bool looks_like_kv_scale(std::string_view name);

}  // namespace fp8kv
