// A model folder: config.json, one model.safetensors or shards with an index.
//
// Which files are read: model.safetensors if it exists, else the files that
// model.safetensors.index.json names, like in transformers. If the index names an existing
// model.safetensors too, all files of the index are read, like in vLLM. `inject` writes such an
// index beside a single-file model. No other file counts: no consolidated*.safetensors, and nothing
// outside the index.
//
// A folder in Mistral's own format has params.json, and no config.json. Its
// consolidated*.safetensors are read. The config, the names of tensors and the order of their rows
// are those of transformers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/files/partial_folder.h"
#include "checkpoint/files/row_order.h"
#include "checkpoint/files/weight_files.h"
#include "files/file_stamp.h"
#include "formats/safetensors.h"
#include "json/json.h"

namespace fp8kv {

// The place of a tensor in a checkpoint: its shard, and its offset in the shard.
struct TensorLocation {
  size_t shard = 0;
  TensorEntry entry;
  RowOrder rows = {};  // map and read return the rows in the order of models
};

using TensorMap = std::map<std::string, TensorLocation>;

struct Shard {
  std::string file;  // relative to the folder
  uint64_t bytes = 0;
  FileStamp stamp;  // from when the header was read
  SafetensorsHeader header;
};

// The bytes of a tensor, and the owner that keeps them mapped.
struct MappedTensor {
  ConstTensorView view;
  std::shared_ptr<const void> keep_alive;
};

// Copies share their mappings. All const members are safe to call from several threads.
class Checkpoint {
 public:
  // Reads config.json, the index and every shard's header, but no weights. Throws, with a remedy,
  // for:
  //   a path that is missing or no checkpoint, or a folder with pickles only
  //   a shard that is missing or outside the folder, or a git-LFS pointer in its place
  //   a tensor of the index that its shard does not have, or a tensor in two shards
  static Checkpoint open(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const Json& config() const { return config_; }
  // The file of the config: config.json, or params.json of Mistral's own format.
  std::filesystem::path config_path() const { return folder_ / form_.config; }
  // The name in the files of a tensor that is there, or is missing.
  std::string name_in_file(const std::string& name) const;
  // The hf_quant_config.json of the folder; nullopt if there is none. The first call reads the
  // file. Later calls return the same, and calls on copies too. Throws like read_hf_quant.
  std::optional<Json> hf_quant() const;
  // All shards, sorted by file name.
  const std::vector<Shard>& shards() const { return shards_; }
  // The parsed index; nullopt if only model.safetensors is read.
  const std::optional<Json>& index() const { return index_; }
  // All tensors by name.
  const TensorMap& tensors() const { return tensors_; }

  // Whether the folder holds only parts of the shards (see partial_folder.h). map and read then
  // throw for a tensor with missing bytes.
  bool is_partial() const { return partial_.has_value(); }
  // The address of a partial model, "hf://org/name@commit"; "" for a whole model.
  std::string address() const { return partial_ ? partial_->address : ""; }
  // The model's name for printed commands: its folder, or "org/name" for a partial model of the
  // hub. That is its name once it is fetched.
  std::filesystem::path named() const;
  // Throws if the checkpoint is partial. Callers that copy files need this: holes would read as
  // zeros.
  void check_has_weights() const;
  // Throws if the folder is in Mistral's own format. Callers that make a folder like this one, or
  // say what runtimes do with it, know the files and names of Hugging Face alone.
  void check_is_hugging_face() const;

  // Returns nullptr if the tensor is absent.
  const TensorEntry* find(const std::string& name) const;
  // Throws if the tensor is absent. The message suggests the nearest name.
  const TensorEntry& at(const std::string& name) const;
  // Returns the tensor's data, and maps its shard on first use. The data is aligned to its
  // elements: a copy is made if it is not aligned in the file. Throws if the tensor is absent.
  // REQUIRES a dtype of whole bytes.
  MappedTensor map(const std::string& name) const;
  // Reads the bytes of one small tensor without mapping. Throws if the tensor is absent.
  std::string read(const std::string& name) const;
  // Reads `length` bytes from `offset` of a tensor without mapping. REQUIRES a range within the
  // tensor.
  std::string read(const std::string& name, uint64_t offset, uint64_t length) const;

  // Throws "'FILE': changed while it was read" unless every shard is still the file that was
  // opened, and all mapped bytes could be read. If it returns, earlier results are those of the
  // opened model.
  void check_unchanged() const;

 private:
  struct Mappings;

  explicit Checkpoint(Json config);
  void open_shards(const std::vector<std::string>& files);
  void check_index() const;
  void read_mistral_form();
  const TensorLocation& location(const std::string& name) const;
  InputFile input(size_t shard) const;
  void check_present(const std::string& name, uint64_t begin, uint64_t end) const;

  std::filesystem::path folder_;
  FolderForm form_;
  Json config_;
  std::vector<Shard> shards_;
  std::optional<Json> index_;
  std::optional<PartialRecord> partial_;
  TensorMap tensors_;
  std::shared_ptr<Mappings> mappings_;
};

}  // namespace fp8kv
