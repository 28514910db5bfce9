// Gives a model's weights in the dtype that it computes in, in whatever form its checkpoint stores
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

// One weight; either `plain` or `stored` is set.
struct Weight {
  std::string name;
  DType dtype = DType::f32;  // dtype for computing
  Shape shape;
  const TensorEntry* plain = nullptr;  // set if the file has plain numbers
  std::optional<StoredWeight> stored;  // set if the weight is quantised

  uint64_t bytes() const;  // size in that dtype
};

class ModelWeights {
 public:
  // Quantised weights are decoded to `dtype`. The checkpoint must outlive this object.
  ModelWeights(const Checkpoint& checkpoint, DType dtype);

  // Returns nullopt if the checkpoint has the tensor in no form. Throws like find_stored_weight.
  std::optional<Weight> find(const ModelTensor& tensor) const;
  // Like find, but throws like Checkpoint::at if the tensor is missing.
  Weight at(const ModelTensor& tensor) const;
  // Reads a range of a weight's bytes in its dtype for computing, and no more of the files than
  // needed. REQUIRES offset and length in whole elements.
  std::string read(const Weight& weight, uint64_t offset, uint64_t length) const;
  // Throws if a quantised weight has an invalid scale (see check_values of StoredWeight) or an
  // invalid group index. Call it before decoding, since reading a model's config does not look at
  // values.
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

// How a quantised tensor looks after decoding: as_decoded, or the tensor unchanged if its codes
// have the file's own order.
ModelTensor decoded_tensor(const ModelTensor& tensor, const StoredWeight& stored);

// Throws unless exactly the weights that the config names are quantised. Returns the forms that
// occur: "fp8, a scale for each row"; "" if all weights are plain.
std::string check_stored_weights(const ModelWeights& weights, const ModelConfig& config);

}  // namespace fp8kv
