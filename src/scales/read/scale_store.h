// Where scale tensors lie, in whatever files: names and shapes of all tensors, bytes of single
// ones, and what the config says. Internal to io.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/layer_name.h"
#include "checkpoint/quant_config.h"
#include "core/model_description.h"
#include "scales/dialects.h"

namespace fp8kv {

struct StoredTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  uint64_t place = 0;  // tensors are best read in this order
};

// The functions throw for what cannot be read; their messages name file or tensor, not the folder.
struct ScaleStore {
  Carrier carrier = Carrier::model_folder;
  std::string where;                  // the folder, in quotes
  std::vector<StoredTensor> tensors;  // by name; those that hold no scales may lack their shapes
  std::function<std::string(const std::string&)> read;
  std::function<std::optional<LayerName>(std::string_view)> split = split_layer_name;
  // What inject wrote beside a tensor: where K was measured; "" where it did not.
  std::function<std::string(const std::string&)> observation = [](const auto&) { return ""; };
  std::function<KvConfig()> config;
  // What is known of the model: layers, their KV heads, and model_type.
  std::function<ModelDescription()> model;
};

// REQUIRES the checkpoint to outlive the store.
ScaleStore store_of(const Checkpoint& checkpoint);

// A TensorRT-LLM checkpoint: config.json and rank0.safetensors, ...
bool is_rank_folder(const std::filesystem::path& folder);
ScaleStore open_rank_folder(const std::filesystem::path& folder);

// AMMO's checkpoint: *_rank0.npz, ..., and a JSON file that describes the model.
bool is_npz_folder(const std::filesystem::path& folder);
ScaleStore open_npz_folder(const std::filesystem::path& folder);

}  // namespace fp8kv
