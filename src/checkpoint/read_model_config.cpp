#include "checkpoint/read_model_config.h"

#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "checkpoint/architectures.h"
#include "checkpoint/config_parts.h"
#include "checkpoint/parse_model_config.h"

namespace fp8kv {
namespace {

// The tensors a model computes with: names and shapes.
class Expected {
 public:
  Expected(const ModelConfig& config, bool embed, bool lm_head) {
    const TensorNames& names = tensor_names();
    const int64_t q_dim = config.n_heads * config.head_dim();
    const int64_t kv_dim = config.n_kv_heads() * config.head_dim();
    if (embed) add(names.embed + ".weight", {config.vocab_size, config.dim});
    for (int64_t layer = 0; layer < config.n_layers(); ++layer) {
      const auto at = [&](const std::string& pattern) {
        return TensorNames::in_layer(pattern, layer);
      };
      add(at(names.attn_norm) + ".weight", {config.dim});
      linear(at(names.q), q_dim, config.dim, config.qkv_bias);
      linear(at(names.k), kv_dim, config.dim, config.qkv_bias);
      linear(at(names.v), kv_dim, config.dim, config.qkv_bias);
      if (config.qk_norm) {
        add(at(names.q_norm) + ".weight", {config.head_dim()});
        add(at(names.k_norm) + ".weight", {config.head_dim()});
      }
      linear(at(names.o), config.dim, q_dim, config.o_bias);
      add(at(names.ffn_norm) + ".weight", {config.dim});
      linear(at(names.gate), config.hidden_dim, config.dim, config.mlp_bias);
      linear(at(names.up), config.hidden_dim, config.dim, config.mlp_bias);
      linear(at(names.down), config.dim, config.hidden_dim, config.mlp_bias);
    }
    add(names.norm + ".weight", {config.dim});
    if (lm_head) add(names.lm_head + ".weight", {config.vocab_size, config.dim});
  }

  const std::vector<std::pair<std::string, Shape>>& in_order() const { return in_order_; }
  bool contains(const std::string& name) const { return names_.contains(name); }

 private:
  void add(const std::string& name, const Shape& shape) {
    in_order_.emplace_back(name, shape);
    names_.insert(name);
  }
  void linear(const std::string& name, int64_t out_dim, int64_t in_dim, bool bias) {
    add(name + ".weight", {out_dim, in_dim});
    if (bias) add(name + ".bias", {out_dim});
  }

  std::vector<std::pair<std::string, Shape>> in_order_;
  std::set<std::string> names_;
};

std::string tensor_of(const Checkpoint& checkpoint, const std::string& name) {
  return cat(quote(checkpoint.folder().string()), ": tensor ", quote(name));
}

void check_shapes(const Checkpoint& checkpoint, const Expected& expected) {
  for (const auto& [name, shape] : expected.in_order()) {
    const TensorEntry& entry = checkpoint.at(name);
    if (entry.shape == shape) continue;
    throw Error(cat(tensor_of(checkpoint, name), ": has the shape ", entry.shape.text(),
                    ", expected ", shape.text(), " from config.json"),
                "config.json and the weights are not of the same model");
  }
}

// The dtype of all weights. A checkpoint that mixes them was saved half converted, or is one of a
// kind that this tool does not compute with.
DType shared_dtype(const Checkpoint& checkpoint, const Expected& expected) {
  const std::string first = TensorNames::in_layer(tensor_names().q, 0) + ".weight";
  const DType dtype = checkpoint.at(first).dtype;
  if (!is_compute_dtype(dtype)) {
    throw Error(cat(tensor_of(checkpoint, first), ": is ", dtype_name(dtype),
                    ", expected F32, F16 or BF16"),
                "calibrate the unquantised model that this one was made from");
  }
  for (const auto& [name, shape] : expected.in_order()) {
    const DType found = checkpoint.at(name).dtype;
    if (found == dtype) continue;
    throw Error(cat(tensor_of(checkpoint, name), ": is ", dtype_name(found), ", but ", quote(first),
                    " is ", dtype_name(dtype)),
                "save the model in one dtype: M.from_pretrained(FOLDER, torch_dtype=...)"
                ".save_pretrained(NEW_FOLDER)");
  }
  return dtype;
}

// A weight that nothing reads means that the model is not what its config.json says: biases that
// are switched off, norms of another architecture, more layers. Scales and buffers are no weights.
void check_no_others(const Checkpoint& checkpoint, const ModelConfig& config,
                     const Expected& expected) {
  for (const auto& [name, location] : checkpoint.tensors()) {
    const bool weight = name.ends_with(".weight") || name.ends_with(".bias");
    const bool of_model = name.starts_with("model.") || name.starts_with("lm_head.");
    if (!weight || !of_model || expected.contains(name)) continue;
    throw Error(cat(tensor_of(checkpoint, name), ": is not a part of ", config.architecture,
                    " with this config.json"),
                "config.json and the weights are not of the same model");
  }
}

// transformers saves what generation stops at here; a chat model's config.json often lacks one.
void read_generation_config(const Checkpoint& checkpoint, ModelConfig& out) {
  const std::filesystem::path path = checkpoint.folder() / "generation_config.json";
  if (!std::filesystem::exists(path)) return;
  if (const auto ids = Json::read(path).find("eos_token_id")) out.eos_ids = parse_token_ids(*ids);
}

}  // namespace

ModelConfig read_model_config(const Checkpoint& checkpoint) {
  ModelConfig config = parse_model_config(checkpoint.config());
  const TensorNames& names = tensor_names();
  const bool has_embed = checkpoint.find(names.embed + ".weight") != nullptr;
  const bool has_lm_head = checkpoint.find(names.lm_head + ".weight") != nullptr;
  const bool tied = config.tied_embeddings;
  if (!tied && has_embed && !has_lm_head) {
    throw Error(cat(tensor_of(checkpoint, names.lm_head + ".weight"),
                    ": is missing, and config.json does not say that it is the embeddings"),
                "if it is, set \"tie_word_embeddings\": true in config.json");
  }
  // Tied: one matrix under either name. Where both are stored the embedding counts, as in
  // transformers 4; version 5 takes matrices that differ for untied.
  const bool needs_embed = !tied || has_embed || !has_lm_head;
  const Expected expected(config, needs_embed, !tied || has_lm_head);
  check_shapes(checkpoint, expected);
  config.dtype = shared_dtype(checkpoint, expected);
  check_no_others(checkpoint, config, expected);
  read_generation_config(checkpoint, config);
  return config;
}

}  // namespace fp8kv
