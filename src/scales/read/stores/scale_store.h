// Access to scale tensors in any kind of file: names and shapes of all tensors, bytes of single
// ones, and the config. Each kind of folder implements it; open_store.h opens one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "checkpoint/layer_name.h"
#include "checkpoint/quant_config.h"
#include "core/numbers/dtype.h"
#include "core/numbers/tensor.h"
#include "core/scales/scales.h"
#include "scales/dialects.h"

namespace fp8kv {

struct StoredTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  uint64_t place = 0;  // tensors are best read in this order
};

// Facts about the model that the scales are for.
struct StoredModel {
  std::string model_type;       // "" if unknown
  int64_t n_kv_heads = 0;       // 0 if unknown
  std::vector<bool> has_cache;  // one for every layer
  // Why the cached layers are unknown; has_cache is then true for all.
  std::optional<Error> unclear = std::nullopt;
  std::vector<int64_t> layer_kv_heads = {};  // see KvScales; empty if layers are alike

  int64_t kv_heads_of(int64_t layer) const {
    const auto i = static_cast<size_t>(layer);
    return i < layer_kv_heads.size() && layer_kv_heads[i] > 0 ? layer_kv_heads[i] : n_kv_heads;
  }
};

// Functions throw for what cannot be read. Messages name the file or tensor, not the folder.
class ScaleStore {
 public:
  virtual ~ScaleStore() = default;

  virtual Carrier carrier() const = 0;
  // The folder, in quotes.
  virtual std::string where() const = 0;
  // Sorted by name. Tensors that hold no scales may have no shape.
  virtual const std::vector<StoredTensor>& tensors() const = 0;
  virtual std::string read(const std::string& tensor) const = 0;
  // Splits a name into its layer and the rest, as this kind of folder spells it.
  virtual std::optional<LayerName> split(std::string_view tensor) const = 0;
  // The text of the scale file that the scales were made from; "" if the folder has none.
  virtual std::string noted_evidence() const { return ""; }
  // The observation that inject noted beside this tensor.
  virtual Observation noted_observation(const std::string& tensor) const = 0;
  // How the scales' own model differs, if inject accepted scales of another model; else "".
  virtual std::string noted_foreign() const { return ""; }
  // The names of the draft layers: "mtp.layers.0".
  virtual std::vector<std::string> draft_layers() const { return {}; }
  virtual KvConfig config() const = 0;
  virtual StoredModel model() const = 0;
  // Throws "'FILE': changed while it was read" if a shard is no longer the one that was opened.
  virtual void check_unchanged() const {}
};

}  // namespace fp8kv
