// A Hugging Face model folder: config.json, one model.safetensors or shards with an index.
//
// Which files are read: model.safetensors when it is there, else those that
// model.safetensors.index.json names, as in transformers. When both are there and the index names
// model.safetensors too (as `inject` writes beside a single-file model), all files it names are
// read, as in vLLM. No other file counts: not consolidated*.safetensors, nor what is in no index.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/partial_folder.h"
#include "files/file_stamp.h"
#include "formats/safetensors.h"
#include "json/json.h"

namespace fp8kv {

inline constexpr const char* kIndexFile = "model.safetensors.index.json";
// What transformers reads instead of the index where both are there.
inline constexpr const char* kSingleFile = "model.safetensors";

// One tensor of a checkpoint: which shard holds it and where.
struct TensorLocation {
  size_t shard = 0;
  TensorEntry entry;
};

// The files that an index names, each once, sorted. Throws for one outside the index's own folder,
// and for one that is not named as safetensors.
std::vector<std::string> files_of_index(const Json& index);

using TensorMap = std::map<std::string, TensorLocation>;

struct Shard {
  std::string file;  // relative to the folder
  uint64_t bytes = 0;
  FileStamp stamp;  // when its header was read
  SafetensorsHeader header;
};

// Tensor bytes with what keeps them mapped.
struct MappedTensor {
  ConstTensorView view;
  std::shared_ptr<const void> keep_alive;
};

// Copies share their mappings. Every const member may be called from several threads.
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
  // Sorted by file name.
  const std::vector<Shard>& shards() const { return shards_; }
  // The parsed index; nullopt when model.safetensors alone is read.
  const std::optional<Json>& index() const { return index_; }
  // All tensors by name.
  const TensorMap& tensors() const { return tensors_; }

  // Whether only parts of the shards are here. map and read then throw for a tensor whose bytes are
  // not among them.
  bool is_partial() const { return partial_.has_value(); }
  // The address that they are parts of, "hf://org/name@commit"; "" of a whole model.
  std::string address() const { return partial_ ? partial_->address : ""; }
  // The name of the model in printed commands: its folder; of a model of the hub "org/name",
  // which is what it is called when it has been fetched.
  std::filesystem::path named() const;
  // Throws where they are not whole: for what copies files, whose holes would read as zeros.
  void check_has_weights() const;

  // nullptr when absent.
  const TensorEntry* find(const std::string& name) const;
  // Throws with the nearest name when absent.
  const TensorEntry& at(const std::string& name) const;
  // Maps the shard on first use. The data is aligned to its elements: where the file has it
  // elsewhere, a copy is made. Throws when absent. REQUIRES a dtype of whole bytes.
  MappedTensor map(const std::string& name) const;
  // Reads the bytes of one small tensor without mapping. Throws when absent.
  std::string read(const std::string& name) const;
  // Reads `length` bytes from `offset` of a tensor without mapping. REQUIRES a part of it.
  std::string read(const std::string& name, uint64_t offset, uint64_t length) const;

  // Throws "'FILE': changed while it was read" unless every shard is the file that was opened, and
  // all of what was mapped could be read. What was computed before is of that model, then.
  void check_unchanged() const;

 private:
  struct Mappings;

  explicit Checkpoint(Json config);
  void open_shards(const std::vector<std::string>& files);
  void check_index() const;
  const TensorLocation& location(const std::string& name) const;
  InputFile input(size_t shard) const;
  void check_present(const std::string& name, uint64_t begin, uint64_t end) const;

  std::filesystem::path folder_;
  Json config_;
  std::vector<Shard> shards_;
  std::optional<Json> index_;
  std::optional<PartialRecord> partial_;
  TensorMap tensors_;
  std::shared_ptr<Mappings> mappings_;
};

}  // namespace fp8kv
