// Where scale tensors lie, in whatever files: names and shapes of all tensors, bytes of single
// ones, and what the config says. Implemented for each kind of folder; opened by open_store.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "checkpoint/layer_name.h"
#include "checkpoint/quant_config.h"
#include "core/dtype.h"
#include "core/scales.h"
#include "core/tensor.h"
#include "scales/dialects.h"

namespace fp8kv {

struct StoredTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  uint64_t place = 0;  // tensors are best read in this order
};

// What is known of the model that the scales are for.
struct StoredModel {
  std::string model_type;       // "" where it is not told
  int64_t n_kv_heads = 0;       // 0 where it is not told
  std::vector<bool> has_cache;  // one for every layer
  // Why it is not known which layers write a cache; has_cache is then true for all.
  std::optional<Error> unclear = std::nullopt;
  std::vector<int64_t> layer_kv_heads = {};  // see KvScales; empty where layers are alike

  int64_t kv_heads_of(int64_t layer) const {
    const auto i = static_cast<size_t>(layer);
    return i < layer_kv_heads.size() && layer_kv_heads[i] > 0 ? layer_kv_heads[i] : n_kv_heads;
  }
};

// Functions throw for what cannot be read; their messages name file or tensor, not the folder.
class ScaleStore {
 public:
  virtual ~ScaleStore() = default;

  virtual Carrier carrier() const = 0;
  // The folder, in quotes.
  virtual std::string where() const = 0;
  // By name; those that hold no scales may lack their shapes.
  virtual const std::vector<StoredTensor>& tensors() const = 0;
  virtual std::string read(const std::string& tensor) const = 0;
  // The layer that a name is of, as this kind of folder spells it.
  virtual std::optional<LayerName> split(std::string_view tensor) const = 0;
  // What inject wrote beside a tensor.
  // The scale file that the scales were made of, as text; "" where nothing holds it.
  virtual std::string noted_evidence() const { return ""; }
  virtual Observation noted_observation(const std::string& tensor) const = 0;
  // The same of scales of another model that were put in all the same: in what it differs; else "".
  virtual std::string noted_foreign() const { return ""; }
  // The names of the layers that draft tokens, "mtp.layers.0".
  virtual std::vector<std::string> draft_layers() const { return {}; }
  virtual KvConfig config() const = 0;
  virtual StoredModel model() const = 0;
  // Throws "'FILE': changed while it was read" where a model's shards are not what was opened.
  virtual void check_unchanged() const {}
};

}  // namespace fp8kv
