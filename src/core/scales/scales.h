// KV-cache scales: calibrate makes them, extract and inject move them, and run uses them.
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

#include "core/cache/kv_format.h"
#include "core/model/model_description.h"
#include "core/model/model_identity.h"
#include "core/numbers/octaves.h"

namespace fp8kv {

// The scales of one layer: real = code * scale. One entry per tensor, or one per KV head. Both are
// empty for a layer that writes no KV cache: it keeps another kind of state, or reads another
// layer's cache. Ask has_cache() before using a first or largest entry.
struct LayerScales {
  std::vector<float> k;
  std::vector<float> v;
  // The scale of Q for all heads, for runtimes whose attention computes in FP8; or none.
  std::vector<float> q = {};

  bool has_cache() const { return !k.empty() || !v.empty(); }
  bool operator==(const LayerScales&) const = default;
};

// Largest magnitudes seen, one entry per KV head; none in a layer without a cache. Q's entry is the
// maximum over the query heads that share the KV head.
struct LayerAmax {
  std::vector<float> k;
  std::vector<float> v;
  std::vector<float> q;
  bool operator==(const LayerAmax&) const = default;
};

// Largest magnitudes after the first part of a text; no layers if nothing of it was counted.
struct AmaxAfter {
  uint64_t tokens = 0;
  std::vector<LayerAmax> layers;
  bool operator==(const AmaxAfter&) const = default;
};

// The parts of a text after which maxima are noted: an eighth, a quarter and half of its windows.
// Each part includes the parts before it.
inline constexpr size_t kTextParts = 3;
inline constexpr std::array<const char*, kTextParts> kTextPartNames = {"eighth", "quarter", "half"};
using AmaxParts = std::array<AmaxAfter, kTextParts>;

// Octave counts of one layer over all KV heads; empty in a layer without a cache.
struct LayerOctaves {
  OctaveCounts k;
  OctaveCounts v;
  OctaveCounts q = {};  // empty in files of older versions
  bool operator==(const LayerOctaves&) const = default;
};

// For a calibration over some of the windows: which shards it took, and the size of the whole text.
struct ShardNote {
  uint64_t of = 0;              // 0: everything was counted
  std::vector<uint64_t> taken;  // rising; fewer than `of`
  uint64_t documents = 0;
  uint64_t windows = 0;
  uint64_t tokens = 0;
  bool operator==(const ShardNote&) const = default;
};

// How far the positions of a calibration reached. Noted for models that rotate K differently in
// long prompts, or multiply K by a factor.
struct PositionsNote {
  std::string rope_type;  // "yarn", "longrope", "dynamic"; "" for other models
  uint64_t original = 0;  // tokens that the model was first trained for: yarn's and longrope's
                          // original_max_position_embeddings, the context of dynamic
  uint64_t limit = 0;     // the longest prompt
  // The longest window in tokens of each merged run, rising.
  std::vector<uint64_t> longest_windows;
  bool operator==(const PositionsNote&) const = default;
};

struct DataFile {
  std::string name;  // as given, without folders
  uint64_t bytes = 0;
  std::string sha256;
  auto operator<=>(const DataFile&) const = default;
};

// The point at which K was measured. Runtimes keep K after RoPE.
enum class Observation {
  unknown,
  before_rope,
  likely_before_rope,  // all known tools with this form measure there, but the file does not say so
  after_rope,
};

// "pre_rope" and "post_rope" as in files; "" if the file does not say.
const char* observation_name(Observation observation);
// nullopt for any other text.
std::optional<Observation> observation_from_name(std::string_view name);

// The origin of scales, as far as it is known. Unknown parts are empty.
struct Provenance {
  std::string source;  // "fp8kv calibrate", or the dialect they were read in: "vllm-json", ...
  std::string tool_version;
  std::string producer;  // the tool that made the source checkpoint: "modelopt"
  std::string producer_version;
  std::string stored_dtype;  // dtype of the scales there, as safetensors spells it: "BF16"
  std::string observer;      // the statistic behind the scales, in compressed-tensors' words
  Observation observation = Observation::unknown;    // never likely_before_rope
  std::string model_fingerprint;                     // see core/model/model_identity.h
  std::optional<ModelIdentity> model_identity = {};  // the identity behind model_fingerprint
  std::string accepted_foreign =
      {};  // how the target model differs, if scales were injected all the same
  std::vector<std::string> unknown_keys = {};  // of config.json (ModelConfig::unknown_keys)
  std::string weights_from = {};               // ModelConfig::stored_as
  std::string compute_dtype;                   // dtype K and V were rounded to: "float16"
  double headroom = 1.0;
  std::string policy;  // "mse" (policy/policies.h); "" if granularity and headroom say it all
  std::vector<LayerAmax> amax;        // one per layer, or empty
  std::vector<LayerOctaves> octaves;  // one per layer, or empty
  AmaxParts parts;  // maxima after parts of the windows (data/text_parts.h); each may be empty
  uint64_t documents = 0;  // documents whose first window was counted
  uint64_t windows = 0;
  uint64_t tokens = 0;
  std::vector<DataFile> data;                    // rising
  std::vector<std::string> chat_templates = {};  // that rendered conversations, by file, rising
  ShardNote shards;
  PositionsNote positions = {};
  bool operator==(const Provenance&) const = default;
};

// The scales of a layer that drafts tokens (MTP). It has its own cache beside those of the model's
// layers.
struct DraftScales {
  std::string layer;   // its name in the checkpoint: "mtp.layers.0", "model.layers.46"
  LayerScales scales;  // never empty
  LayerAmax amax;      // empty if the source has no maxima
  bool operator==(const DraftScales&) const = default;
};

struct KvScales {
  KvFormat format = KvFormat::e4m3fn;  // the format that the scales are made for, see scales_for
  std::string model_type;              // "llama", or "" if the source does not say
  int64_t n_kv_heads = 0;              // 0 if the source does not say
  // KV heads of each layer, if layers differ; empty if all have n_kv_heads, or if nobody knows.
  std::vector<int64_t> layer_kv_heads = {};
  // Layers cache one latent vector (MLA). K and V share one scale, since V is a part of K. In
  // counts, K then means the rotated elements, and V the normed latent. False if the source does
  // not say.
  bool latent = false;
  // Layers served in the model's own dtype, rising. Their scales are not used.
  std::vector<int64_t> skipped = {};
  // One entry for every layer of the model. A source that names only layers with a cache, such as
  // vLLM's JSON, may lack entries behind the last of them.
  std::vector<LayerScales> layers;
  std::vector<DraftScales> drafts = {};  // in the checkpoint's order
  Provenance provenance;

  // The largest number of scales that any layer has for K (and as many for V); 0 if no layer has a
  // cache.
  size_t scales_per_layer() const;
  bool per_head() const { return scales_per_layer() > 1; }
  size_t cached_layers() const;
  bool operator==(const KvScales&) const = default;
};

// The largest entry of a layer's scales or maxima; 0 without any.
float largest(std::span<const float> heads);

// scale = amax / max of the format, times headroom, all in f32 and correctly rounded. ModelOpt
// since 0.27 and AutoRound compute the same. AMMO multiplied by 1/448, which differs in the last
// place for half of all values. An amax of 0 gives 1. An fnuz scale is exactly twice the fn scale.
// NVFP4: amax / 2688, the largest code 6 times the largest block scale 448.
float scale_from_amax(float amax, KvFormat format, double headroom);

// Converts scales to another format: fn to fnuz doubles them, fnuz to fn halves them, exactly.
// Throws between e4m3, e5m2 and nvfp4, which no factor relates.
KvScales with_format(const KvScales& scales, KvFormat format);

// The format in which files store scales of this format: NVFP4 for NVFP4, E4M3FN for FP8.
KvFormat stored_format(KvFormat format);

// Gives every layer with a cache a scale of Q: the existing one, else amax / 448 from the maxima of
// Q. Throws if a layer has no scale and no maximum. Throws for a cache of latents, because runtimes
// change its Q before they use it.
KvScales with_q_scales(const KvScales& scales, const std::string& source);
bool has_q_scales(const KvScales& scales);

// Reduces each layer to one scale for K and one for V: the maximum over its heads.
KvScales per_tensor(const KvScales& scales);

// Calls `change` for the model's layers, then for the draft layers.
void for_each_layer(KvScales& scales, const std::function<void(LayerScales&)>& change);

// Throws unless `scale` is a positive, finite, normal float, which every runtime can use. The
// message is "<where> is 0, expected ...".
void check_scale(float scale, const std::string& where);

// Throws unless every scale is a positive, finite, normal float, some layer has a cache, and all
// such layers have the same shape. The message names the layer and `source`.
void check_values(const KvScales& scales, const std::string& source);

// For every layer, whether it writes a KV cache. True for all if the layers are not known.
std::vector<bool> layers_with_cache(const ModelDescription& model);

// Throws unless the numbers of layers and heads fit the model, and exactly the layers that write a
// KV cache have scales. If the layers are not known, every layer must have scales. Throws if V is a
// part of K and their scales differ.
void check_fits(const KvScales& scales, const ModelDescription& model, const std::string& source);

// The largest scale of K and V, for readers that use one number for both. REQUIRES a cache.
float fused_scale(const LayerScales& layer);

// "layer 3", "layers 0-5, 7 and 9". REQUIRES rising numbers.
std::string layer_list(const std::vector<size_t>& layers);

}  // namespace fp8kv
