// The weights of a model as numbers of the type that it computes in, however its checkpoint stores
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "config/families/tensor_table.h"
#include "quant/quant_groups.h"
#include "quant/quant_settings.h"
#include "quant/stored_weight.h"

namespace fp8kv {

// One weight; `plain` or `stored` is there.
struct Weight {
  std::string name;
  DType dtype = DType::f32;  // as it is computed with
  Shape shape;
  const TensorEntry* plain = nullptr;  // as the file has it
  std::optional<StoredWeight> stored;  // quantised

  uint64_t bytes() const;  // as it is computed with
};

class ModelWeights {
 public:
  // `dtype`: what quantised weights are decoded to. The checkpoint outlives this.
  ModelWeights(const Checkpoint& checkpoint, DType dtype);

  // nullopt where the checkpoint has neither. Throws as find_stored_weight.
  std::optional<Weight> find(const ModelTensor& tensor) const;
  // Throws as Checkpoint::at where it has neither.
  Weight at(const ModelTensor& tensor) const;
  // A part of a weight's bytes as it is computed with, without reading more of the files than that.
  // REQUIRES offset and length to be of whole elements.
  std::string read(const Weight& weight, uint64_t offset, uint64_t length) const;
  // Throws where a scale of a quantised weight is none (see check_values of StoredWeight), or a
  // group is not there.
  // Whoever decodes has to ask first: reading a model's config looks at no values.
  void check_values(const Weight& weight) const;

  const QuantSettings& settings() const { return settings_; }
  const std::vector<QuantGroup>& groups() const { return groups_; }
  const Checkpoint& checkpoint() const { return checkpoint_; }

 private:
  std::optional<StoredWeight> find_stored(const ModelTensor& tensor) const;
  QuantisedMatrix map(const StoredWeight& stored, std::vector<MappedTensor>& mapped) const;

  const Checkpoint& checkpoint_;
  DType dtype_;
  QuantSettings settings_;
  std::vector<QuantGroup> groups_;
};

// What a quantised tensor is once it is decoded: as_decoded, or the plain tensor itself where that
// is the order of its codes.
ModelTensor decoded_tensor(const ModelTensor& tensor, const StoredWeight& stored);

// Throws unless quantised weights are those that the config says.
// Returns the forms that there are: "fp8, a scale for each row"; "" where all weights are plain.
std::string check_stored_weights(const ModelWeights& weights, const ModelConfig& config);

}  // namespace fp8kv
