// A table with one row for each tool: how it names its KV scales, and what they mean. A tensor's
// row follows from its name and from the config. Reads no values.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/quant_config.h"
#include "core/scales/scales.h"

namespace fp8kv {

// The container that holds the scales.
enum class Carrier {
  model_folder,  // Hugging Face: model.safetensors, or shards with an index
  rank_folder,   // TensorRT-LLM: rank0.safetensors, ...
  npz_folder,    // AMMO: *_rank0.npz, ...
  json,          // vLLM's kv_cache_scales.json
};

// The part of the attention that a scale belongs to.
enum class ScaleOf { k, v, both, q };

// The name of one scale tensor: anything that ends in "layers.", the layer number and `rest`.
// "self_attn" stands for every name of kAttentionNames.
struct ScalePattern {
  std::string rest;  // "self_attn.k_scale"
  ScaleOf of = ScaleOf::k;
};

struct Dialect {
  std::string name;         // "autofp8-kv_scale"
  std::string family;       // "autofp8"
  std::string written_by;   // for people, like the two below
  std::string config_says;  // how the config shows it; "" if no config is needed
  std::string k_measured;
  std::vector<ScalePattern> patterns;
  // `says`: whether a config belongs to this row. `observation`: where K was measured, as that
  // config tells.
  bool (*says)(const KvConfig&) = nullptr;
  Observation (*observation)(const KvConfig&) = nullptr;
  Carrier carrier = Carrier::model_folder;
  float floor = 0;     // smaller scales were raised to this; 0: no floor
  bool fused = false;  // stores the same number for K and for V
};

std::span<const Dialect> dialects();
// Returns nullptr for a name that no row has.
const Dialect* find_dialect(std::string_view name);

// The row's tensor names in a form for people: {"self_attn.{k,v}_scale"}.
std::vector<std::string> tensor_forms(const Dialect& dialect);

// The rows that have a tensor of this name, and what the tensor scales. `rest` as in LayerName.
struct DialectMatch {
  std::vector<const Dialect*> rows;
  ScaleOf of = ScaleOf::k;
};
DialectMatch match_scale_name(Carrier carrier, std::string_view rest);

// Whether a tensor is the offset of a scale: a zero point, or ModelOpt's k_bias.
bool is_offset(std::string_view name);

// Why a tensor beside the scales is left alone: "scales of the softmax, which is not cached".
// Returns nullptr for tensors unrelated to scales, and for scales of Q by names that runtimes read.
const char* why_ignored(std::string_view rest);

// Whether a name looks like a KV scale of some tool in a form that no row describes. Weight and
// input scales of quantised projections (k_proj.weight_scale) do not count.
bool looks_like_kv_scale(std::string_view name);

}  // namespace fp8kv
