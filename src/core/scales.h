// KV-cache scales: the one thing that calibrate makes, extract and inject move, and run uses.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/fp8.h"
#include "core/model_description.h"
#include "core/octaves.h"

namespace fp8kv {

// Dequantisation multipliers of one layer: real = code * scale. One entry per tensor, or one per
// KV head.
struct LayerScales {
  std::vector<float> k;
  std::vector<float> v;
  bool operator==(const LayerScales&) const = default;
};

// Largest magnitudes seen, one entry per KV head. Q is the maximum over the query heads that share
// the KV head.
struct LayerAmax {
  std::vector<float> k;
  std::vector<float> v;
  std::vector<float> q;
  bool operator==(const LayerAmax&) const = default;
};

// Magnitudes of one layer, all KV heads together.
struct LayerOctaves {
  OctaveCounts k;
  OctaveCounts v;
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

struct DataFile {
  std::string name;  // as given, without folders
  uint64_t bytes = 0;
  std::string sha256;
  auto operator<=>(const DataFile&) const = default;
};

// Where scales come from, as far as it is known. Absent parts are empty.
struct Provenance {
  std::string source;  // "fp8kv calibrate", or the dialect they were read in: "vllm-json", ...
  std::string tool_version;
  std::string producer;  // what made the checkpoint they were read from: "modelopt"
  std::string producer_version;
  std::string stored_dtype;       // in that checkpoint, as safetensors spells it: "BF16"
  std::string observer;           // the statistic that was scaled, as compressed-tensors names it
  std::string observation;        // "post_rope" or "pre_rope" or ""
  std::string model_fingerprint;  // see checkpoint/fingerprint.h
  std::string compute_dtype;      // dtype K and V were rounded to: "float16"
  double headroom = 1.0;
  std::string policy;  // "mse" (calib/policies.h); "" where granularity and headroom say it all
  std::vector<LayerAmax> amax;        // one per layer, or empty
  std::vector<LayerOctaves> octaves;  // one per layer, or empty
  uint64_t documents = 0;             // whose first window was counted
  uint64_t windows = 0;
  uint64_t tokens = 0;
  std::vector<DataFile> data;  // rising
  ShardNote shards;
  bool operator==(const Provenance&) const = default;
};

struct KvScales {
  Fp8Format format = Fp8Format::e4m3fn;  // what the scales are made for
  std::string model_type;                // "llama", or "" where the source does not say
  int64_t n_kv_heads = 0;                // 0 where the source does not say
  std::vector<LayerScales> layers;
  Provenance provenance;

  bool per_head() const;
  bool operator==(const KvScales&) const = default;
};

// Of the scales or maxima of a layer's heads; 0 without any.
float largest(std::span<const float> heads);

// s = float(amax) * (1.0f / max of the format), times headroom, all in f32. Bit-exact with what
// AMMO wrote: a division by 448 differs in the last place for half of all values. An amax of 0
// gives 1. For fnuz formats the result is exactly twice the fn one.
float scale_from_amax(float amax, Fp8Format format, double headroom);

// The same scales for another format: fn -> fnuz doubles, fnuz -> fn halves, exactly.
// Throws between e4m3 and e5m2, which no factor relates.
KvScales with_format(const KvScales& scales, Fp8Format format);

// Each layer reduced to one scale for K and one for V: the maximum over heads.
KvScales per_tensor(const KvScales& scales);

// Throws unless `scale` is a positive, finite, normal float: what every runtime can use. The
// message is "<where> is 0, expected ...".
void check_scale(float scale, const std::string& where);

// Throws unless every scale is a positive, finite, normal float and every layer has the same
// shape; names the layer. `source` is named in the message.
void check_values(const KvScales& scales, const std::string& source);

// Throws unless the number of layers and heads fits the model.
void check_fits(const KvScales& scales, const ModelDescription& model, const std::string& source);

// "float8_e4m3fn" and so on, as torch spells them.
std::string format_name(Fp8Format format);

}  // namespace fp8kv
