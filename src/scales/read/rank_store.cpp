#include "scales/read/rank_store.h"

#include <system_error>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "config/describe/describe_model.h"
#include "files/file.h"
#include "formats/safetensors.h"
#include "json/json.h"
#include "scales/read/scale_ranks.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

std::string rank_file(int64_t rank) {
  return cat("rank", rank, ".safetensors");
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

RankFile open_rank(const fs::path& path) {
  const InputFile file(path);
  RankFile rank;
  rank.name = path.filename().string();
  for (const TensorEntry& entry : read_safetensors_header(file, path).tensors) {
    rank.tensors[entry.name] = {entry.name, entry.dtype, entry.shape, entry.begin};
  }
  rank.read = [file, tensors = rank.tensors](const std::string& name) {
    const StoredTensor& tensor = tensors.at(name);
    return file.read(tensor.place, tensor.shape.elements() * dtype_bytes(tensor.dtype));
  };
  return rank;
}

std::vector<RankFile> open_rank_files(const fs::path& folder, int64_t n_ranks) {
  std::vector<RankFile> ranks;
  for (int64_t rank = 0; rank < n_ranks; ++rank) {
    const fs::path path = folder / rank_file(rank);
    if (!is_there(path)) {
      throw Error(cat(quote(folder.string()), ": has no ", rank_file(rank),
                      ", though mapping.tp_size in config.json is ", n_ranks),
                  "copy the whole folder");
    }
    ranks.push_back(open_rank(path));
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

}  // namespace

bool is_rank_folder(const fs::path& folder) {
  return is_there(folder / "config.json") && is_there(folder / rank_file(0)) &&
         !is_there(folder / kSingleFile) && !is_there(folder / kIndexFile);
}

std::unique_ptr<ScaleStore> open_rank_folder(const fs::path& folder) {
  return std::make_unique<RankStore>(folder,
                                     Json::read(folder / "config.json", JsonNumbers::python));
}

}  // namespace fp8kv
