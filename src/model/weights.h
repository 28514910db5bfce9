// Tensors of a checkpoint as the forward pass wants them.
#pragma once

#include <optional>
#include <vector>

#include "backend/backend.h"
#include "core/config.h"
#include "io/checkpoint.h"

namespace fp8kv {

struct Linear {
  ConstTensorView weight;               // [out_dim, in_dim]
  std::optional<ConstTensorView> bias;  // [out_dim]
};

// One layer. The views live as long as `storage`.
struct LayerWeights {
  ConstTensorView attn_norm;  // [dim]
  Linear q;                   // [n_heads * head_dim, dim]
  Linear k;                   // [n_kv_heads * head_dim, dim]
  Linear v;                   // [n_kv_heads * head_dim, dim]
  Linear o;                   // [dim, n_heads * head_dim]
  ConstTensorView ffn_norm;   // [dim]
  Linear gate;                // [hidden_dim, dim]
  Linear up;                  // [hidden_dim, dim]
  Linear down;                // [dim, hidden_dim]
  std::vector<Tensor> storage;
};

// What is not in a layer.
struct HeadWeights {
  ConstTensorView norm;     // [dim]
  ConstTensorView lm_head;  // [vocab_size, dim]; the embedding where they are tied
  std::vector<Tensor> storage;
};

// Puts a checkpoint's tensors on a backend, part by part; the CPU uses the file mapping in place.
// REQUIRES the checkpoint to have passed read_model_config and to outlive the loader.
class WeightLoader {
 public:
  WeightLoader(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend)
      : checkpoint_(checkpoint), config_(config), backend_(backend) {}

  Tensor embedding() const;  // [vocab_size, dim]
  LayerWeights layer(int64_t index) const;
  HeadWeights head() const;

 private:
  ConstTensorView load(const std::string& name, std::vector<Tensor>& storage) const;
  Linear load_linear(const std::string& name, bool bias, std::vector<Tensor>& storage) const;

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  Backend& backend_;
};

}  // namespace fp8kv
