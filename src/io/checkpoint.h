// A Hugging Face model folder: config.json, one model.safetensors or shards with an index.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "io/safetensors.h"

namespace fp8kv {

// One tensor of a checkpoint: which shard holds it and where.
struct TensorLocation {
  size_t shard = 0;
  TensorEntry entry;
};

struct Shard {
  std::string file;  // relative to the folder
  uint64_t bytes = 0;
  SafetensorsHeader header;
};

// Tensor bytes with what keeps them mapped.
struct MappedTensor {
  ConstTensorView view;
  std::shared_ptr<const void> keep_alive;
};

class Checkpoint {
 public:
  // Reads config.json, the index and every shard's header; no weights. Throws, with the way out,
  // for: no such path, not a checkpoint, a shard the index names but the folder lacks, a shard name
  // that leaves the folder, a git-LFS pointer instead of weights, a folder with pickles only, a
  // tensor the index promises but its shard lacks, a tensor held by two shards.
  static Checkpoint open(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const Json& config() const { return config_; }
  std::filesystem::path config_path() const { return folder_ / "config.json"; }
  const std::vector<Shard>& shards() const { return shards_; }
  // The parsed index; nullopt for a single-file model.
  const std::optional<Json>& index() const { return index_; }
  // All tensors by name.
  const std::map<std::string, TensorLocation>& tensors() const { return tensors_; }

  // nullptr when absent.
  const TensorEntry* find(const std::string& name) const;
  // Throws with the nearest names when absent.
  const TensorEntry& at(const std::string& name) const;
  // Maps the shard on first use. Throws when absent.
  MappedTensor map(const std::string& name) const;
  // Reads the bytes of one small tensor without mapping.
  std::string read(const std::string& name) const;

 private:
  std::filesystem::path folder_;
  Json config_;
  std::vector<Shard> shards_;
  std::optional<Json> index_;
  std::map<std::string, TensorLocation> tensors_;
  mutable std::vector<std::optional<MappedFile>> mapped_;

  explicit Checkpoint(Json config) : config_(std::move(config)) {}
};

}  // namespace fp8kv
