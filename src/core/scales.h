// KV-cache scales: the one thing that calibrate makes, extract and inject move, and run uses.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/kv_format.h"
#include "core/model_description.h"
#include "core/model_identity.h"
#include "core/octaves.h"

namespace fp8kv {

// Dequantisation multipliers of one layer: real = code * scale. One entry per tensor, or one per
// KV head. Both are empty for a layer that writes no KV cache, because it keeps a state of another
// kind or reads the cache of another layer. Ask has_cache() before using a first or largest entry.
struct LayerScales {
  std::vector<float> k;
  std::vector<float> v;
  // Q's, for runtimes whose attention computes in FP8: one for all heads, or none.
  std::vector<float> q = {};

  bool has_cache() const { return !k.empty() || !v.empty(); }
  bool operator==(const LayerScales&) const = default;
};

// Largest magnitudes seen, one entry per KV head; none in a layer without a cache. Q is the maximum
// over the query heads that share the KV head.
struct LayerAmax {
  std::vector<float> k;
  std::vector<float> v;
  std::vector<float> q;
  bool operator==(const LayerAmax&) const = default;
};

// Largest magnitudes after the first part of a text; no layers where nothing of it was counted.
struct AmaxAfter {
  uint64_t tokens = 0;
  std::vector<LayerAmax> layers;
  bool operator==(const AmaxAfter&) const = default;
};

// Parts of a text after which maxima are noted: an eighth, a quarter and half of its windows, each
// with those of the one before.
inline constexpr size_t kTextParts = 3;
inline constexpr std::array<const char*, kTextParts> kTextPartNames = {"eighth", "quarter", "half"};
using AmaxParts = std::array<AmaxAfter, kTextParts>;

// Magnitudes of one layer, all KV heads together; none in a layer without a cache.
struct LayerOctaves {
  OctaveCounts k;
  OctaveCounts v;
  OctaveCounts q = {};  // nothing in files of older versions
  bool operator==(const LayerOctaves&) const = default;
};

// For a calibration over a part of the windows: which part, and what there is in all.
struct ShardNote {
  uint64_t of = 0;              // 0: everything was counted
  std::vector<uint64_t> taken;  // rising; fewer than `of`
  uint64_t documents = 0;
  uint64_t windows = 0;
  uint64_t tokens = 0;
  bool operator==(const ShardNote&) const = default;
};

// How far the positions of a calibration reached, for models whose rotation of K is another in long
// prompts, or has a factor that multiplies K.
struct PositionsNote {
  std::string rope_type;  // "yarn", "longrope", "dynamic"; "" for models of any other
  uint64_t original = 0;  // tokens that the model was first trained for: yarn's and longrope's
                          // original_max_position_embeddings, the context of dynamic
  uint64_t limit = 0;     // the longest prompt
  // Tokens of the longest window of each run that was merged, rising.
  std::vector<uint64_t> longest_windows;
  bool operator==(const PositionsNote&) const = default;
};

struct DataFile {
  std::string name;  // as given, without folders
  uint64_t bytes = 0;
  std::string sha256;
  auto operator<=>(const DataFile&) const = default;
};

// Where K was measured. Runtimes keep K after RoPE.
enum class Observation {
  unknown,
  before_rope,
  likely_before_rope,  // every known tool of this form measures there, but the file does not tell
  after_rope,
};

// "pre_rope" and "post_rope" in files; "" for what a file does not tell.
const char* observation_name(Observation observation);
// nullopt for any other text.
std::optional<Observation> observation_from_name(std::string_view name);

// Where scales come from, as far as it is known. Absent parts are empty.
struct Provenance {
  std::string source;  // "fp8kv calibrate", or the dialect they were read in: "vllm-json", ...
  std::string tool_version;
  std::string producer;  // what made the checkpoint they were read from: "modelopt"
  std::string producer_version;
  std::string stored_dtype;  // in that checkpoint, as safetensors spells it: "BF16"
  std::string observer;      // the statistic that was scaled, as compressed-tensors names it
  Observation observation = Observation::unknown;    // never likely_before_rope
  std::string model_fingerprint;                     // see core/model_identity.h
  std::optional<ModelIdentity> model_identity = {};  // what that is the digest of
  std::string accepted_foreign =
      {};  // in what the model differs that they were put into all the same
  std::vector<std::string> unknown_keys = {};  // of config.json (ModelConfig::unknown_keys)
  std::string weights_from = {};               // ModelConfig::stored_as
  std::string compute_dtype;                   // dtype K and V were rounded to: "float16"
  double headroom = 1.0;
  std::string policy;  // "mse" (policy/policies.h); "" where granularity and headroom say it all
  std::vector<LayerAmax> amax;        // one per layer, or empty
  std::vector<LayerOctaves> octaves;  // one per layer, or empty
  AmaxParts parts;                    // of the windows (data/text_parts.h); each may be empty
  uint64_t documents = 0;             // whose first window was counted
  uint64_t windows = 0;
  uint64_t tokens = 0;
  std::vector<DataFile> data;                    // rising
  std::vector<std::string> chat_templates = {};  // that rendered conversations, by file, rising
  ShardNote shards;
  PositionsNote positions = {};
  bool operator==(const Provenance&) const = default;
};

// A layer that drafts tokens (MTP), with a cache of its own beside those of the model's layers.
struct DraftScales {
  std::string layer;   // its name in the checkpoint: "mtp.layers.0", "model.layers.46"
  LayerScales scales;  // never empty
  LayerAmax amax;      // empty where nobody says what the scales were made from
  bool operator==(const DraftScales&) const = default;
};

struct KvScales {
  KvFormat format = KvFormat::e4m3fn;  // what the scales are made for, see scales_for
  std::string model_type;              // "llama", or "" where the source does not say
  int64_t n_kv_heads = 0;              // 0 where the source does not say
  // Of each layer, where layers differ in them; empty where all have n_kv_heads, or nobody knows.
  std::vector<int64_t> layer_kv_heads = {};
  // Layers cache one latent vector: K and V have one scale, since V is a part of K. What was
  // counted as K is then what is rotated, and as V the normed latent. False where the source does
  // not say.
  bool latent = false;
  // Layers that are to be served in the model's own dtype, rising: their scales are not used.
  std::vector<int64_t> skipped = {};
  // One for every layer of the model. Where the source names none but layers with a cache, as
  // vLLM's JSON does, those behind the last of them may be missing.
  std::vector<LayerScales> layers;
  std::vector<DraftScales> drafts = {};  // in the checkpoint's order
  Provenance provenance;

  // Scales that a layer with a cache has for K, and as many for V, at most; 0 without such a layer.
  size_t scales_per_layer() const;
  bool per_head() const { return scales_per_layer() > 1; }
  size_t cached_layers() const;
  bool operator==(const KvScales&) const = default;
};

// Of the scales or maxima of a layer's heads; 0 without any.
float largest(std::span<const float> heads);

// s = amax / max of the format, times headroom, all in f32: correctly rounded, and what ModelOpt
// since 0.27 and AutoRound compute. AMMO multiplied by 1/448, which differs in the last place for
// half of all values. An amax of 0 gives 1. For fnuz formats the result is exactly twice the fn
// one. NVFP4: amax / 2688, the largest code 6 times the largest block scale 448.
float scale_from_amax(float amax, KvFormat format, double headroom);

// The same scales for another format: fn -> fnuz doubles, fnuz -> fn halves, exactly.
// Throws between e4m3, e5m2 and nvfp4, which no factor relates.
KvScales with_format(const KvScales& scales, KvFormat format);

// The format in which files keep such scales: NVFP4 by itself, E4M3FN for FP8.
KvFormat stored_format(KvFormat format);

// Gives every layer with a cache a scale of Q: the one that is there, else amax / 448 from
// the maxima of Q. Throws where a layer has neither, and for a cache of latents, whose Q runtimes
// change before they use it.
KvScales with_q_scales(const KvScales& scales, const std::string& source);
bool has_q_scales(const KvScales& scales);

// Each layer reduced to one scale for K and one for V: the maximum over heads.
KvScales per_tensor(const KvScales& scales);

// Those of the model's layers, then those of draft layers.
void for_each_layer(KvScales& scales, const std::function<void(LayerScales&)>& change);

// Throws unless `scale` is a positive, finite, normal float: what every runtime can use. The
// message is "<where> is 0, expected ...".
void check_scale(float scale, const std::string& where);

// Throws unless every scale is a positive, finite, normal float, every layer with a cache has the
// same shape, and there is one; names the layer. `source` is named in the message.
void check_values(const KvScales& scales, const std::string& source);

// One for every layer: whether it writes a KV cache. True for all where the layers are not known.
std::vector<bool> layers_with_cache(const ModelDescription& model);

// Throws unless the numbers of layers and heads fit the model, and the layers that have scales are
// those that write a KV cache. Where these are not known, every layer must have scales. Throws
// where V is a part of K and their scales differ.
void check_fits(const KvScales& scales, const ModelDescription& model, const std::string& source);

// The largest scale of K and V, for readers that have one number for both. REQUIRES a cache.
float fused_scale(const LayerScales& layer);

// "layer 3", "layers 0-5, 7 and 9". REQUIRES rising numbers.
std::string layer_list(const std::vector<size_t>& layers);

}  // namespace fp8kv
