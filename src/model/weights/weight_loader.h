// Loads a checkpoint's weights onto a backend, where all of them stay.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/model_weights.h"
#include "config/families/tensor_table.h"
#include "core/model/config.h"
#include "model/weights/weights.h"

namespace fp8kv {

// The tensor that holds the embedding: tied models may store the shared matrix under either name.
ModelTensor embedding_tensor(const Checkpoint& checkpoint, const ModelConfig& config);

// Puts a checkpoint's tensors on a backend, part by part; the CPU uses the file mapping in place.
// Quantised ones are decoded there.
// REQUIRES the checkpoint to have passed read_model_config and to outlive the loader.
class WeightLoader {
 public:
  WeightLoader(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend)
      : checkpoint_(checkpoint),
        config_(config),
        backend_(backend),
        weights_(checkpoint, config.dtype) {}

  Tensor tensor(const ModelTensor& tensor) const;  // with the tensor's own name and shape
  // Another weight that is not in a layer; nothing if the model has no such role.
  std::optional<Tensor> outer(TensorRole role) const;
  std::vector<Tensor> outers(TensorRole role) const;  // for roles of several tensors
  // The norm of the embedding; puts its memory into `storage`. REQUIRES ModelConfig::embed_norm.
  Norm embed_norm(std::vector<Tensor>& storage) const;
  LayerWeights layer(int64_t index) const;
  HeadWeights head() const;

 private:
  Tensor upload_file(const std::string& name) const;
  Tensor upload(const ModelTensor& tensor) const;
  FoundTensor upload(const ModelTensor& tensor, bool may_have_codes,
                     std::vector<Tensor>& storage) const;
  Tensor normed_rows(const ModelTensor& tensor) const;  // a matrix with its rows scaled to length 1

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  Backend& backend_;
  ModelWeights weights_;
};

}  // namespace fp8kv
