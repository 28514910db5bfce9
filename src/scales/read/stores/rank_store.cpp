#include "scales/read/stores/rank_store.h"

#include <system_error>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/quant_methods.h"
#include "config/describe/describe_model.h"
#include "files/file.h"
#include "formats/safetensors.h"
#include "json/json.h"
#include "scales/read/stores/scale_ranks.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

std::string rank_file(int64_t rank) {
  return cat("rank", rank, ".safetensors");
}

uint64_t bytes_of(const StoredTensor& tensor) {
  return tensor.shape.elements() * dtype_bytes(tensor.dtype);
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// The number of rank files that the config asks for.
int64_t count_ranks(const Json& config) {
  const auto mapping = config.find("mapping");
  if (!mapping) return 1;
  if (const auto pipeline = mapping->find("pp_size"); pipeline && pipeline->as_int() != 1) {
    throw Error(cat(pipeline->where(), ": is ", pipeline->brief(), ", expected 1"),
                "layers are numbered anew in each pipeline rank: convert the checkpoint with "
                "pp_size 1");
  }
  const int64_t n_ranks = mapping->get_int("tp_size", 1);
  if (n_ranks < 1 || n_ranks > kMostTpRanks) {
    fail(mapping->where(), ".tp_size: is ", n_ranks, ", expected 1 to ", kMostTpRanks);
  }
  return n_ranks;
}

// Throws for a tensor that was not fetched with the rest of a remote folder.
void check_present(const PartialRecord& record, const std::string& file,
                   const StoredTensor& tensor) {
  const auto known = record.files.find(file);
  const uint64_t end = tensor.place + bytes_of(tensor);
  if (known == record.files.end() || known->second.has(tensor.place, end)) return;
  throw Error(cat(quote(record.address), ": the tensor ", quote(tensor.name), " of ", quote(file),
                  " was not read from there: only headers and KV scales were"),
              "fetch the folder, and name it here");
}

RankFile open_rank(const fs::path& path, const std::optional<PartialRecord>& partial) {
  const InputFile file(path);
  RankFile rank;
  rank.name = path.filename().string();
  for (const TensorEntry& entry : read_safetensors_header(file, path).tensors) {
    rank.tensors[entry.name] = {entry.name, entry.dtype, entry.shape, entry.begin};
  }
  rank.read = [file, partial, name = rank.name, tensors = rank.tensors](const std::string& wanted) {
    const StoredTensor& tensor = tensors.at(wanted);
    if (partial) check_present(*partial, name, tensor);
    return file.read(tensor.place, bytes_of(tensor));
  };
  return rank;
}

std::vector<RankFile> open_rank_files(const fs::path& folder, int64_t n_ranks) {
  const std::optional<PartialRecord> partial = read_partial_record(folder);
  std::vector<RankFile> ranks;
  for (int64_t rank = 0; rank < n_ranks; ++rank) {
    const fs::path path = folder / rank_file(rank);
    if (!is_there(path)) {
      throw Error(cat(quote(folder.string()), ": has no ", rank_file(rank),
                      ", though mapping.tp_size in config.json is ", n_ranks),
                  "copy the whole folder");
    }
    ranks.push_back(open_rank(path, partial));
  }
  return ranks;
}

class RankStore : public ScaleStore {
 public:
  RankStore(const fs::path& folder, Json config)
      : where_(quote(folder.string())),
        config_(std::move(config)),
        ranks_(open_rank_files(folder, count_ranks(config_))),
        tensors_(tensors_of_ranks(ranks_)) {}

  Carrier carrier() const override { return Carrier::rank_folder; }
  std::string where() const override { return where_; }
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  std::string read(const std::string& tensor) const override {
    return read_in_ranks(ranks_, tensor);
  }
  std::optional<LayerName> split(std::string_view tensor) const override {
    return split_layer_name(tensor);
  }
  Observation noted_observation(const std::string&) const override { return Observation::unknown; }
  KvConfig config() const override { return read_trtllm_config(config_); }
  // The config cannot name layers without a cache.
  StoredModel model() const override {
    const ModelDescription model = describe_model(config_);
    return {model.model_type, model.n_kv_heads(),
            std::vector<bool>(static_cast<size_t>(model.n_layers()), true)};
  }

 private:
  std::string where_;
  Json config_;
  std::vector<RankFile> ranks_;
  std::vector<StoredTensor> tensors_;
};

Json rank_config(const fs::path& folder) {
  return Json::read(folder / "config.json", JsonNumbers::python);
}

}  // namespace

bool is_rank_folder(const fs::path& folder) {
  return is_there(folder / "config.json") && is_there(folder / rank_file(0)) &&
         !is_there(folder / kSingleFile) && !is_there(folder / kIndexFile);
}

std::unique_ptr<ScaleStore> open_rank_folder(const fs::path& folder) {
  return std::make_unique<RankStore>(folder, rank_config(folder));
}

std::vector<FilePart> rank_parts(const fs::path& folder, const std::vector<std::string>& tensors) {
  std::vector<FilePart> parts;
  for (const RankFile& rank : open_rank_files(folder, count_ranks(rank_config(folder)))) {
    for (const std::string& name : tensors) {
      const auto found = rank.tensors.find(name);
      if (found == rank.tensors.end()) continue;
      const uint64_t begin = found->second.place;
      parts.push_back({rank.name, {begin, begin + bytes_of(found->second)}});
    }
  }
  return parts;
}

}  // namespace fp8kv
