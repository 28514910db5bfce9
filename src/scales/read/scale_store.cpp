#include "scales/read/scale_store.h"

#include <system_error>

#include "base/error.h"
#include "checkpoint/describe_model.h"
#include "files/file.h"
#include "scales/read/scale_ranks.h"
#include "scales/scale_names.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kMostTpRanks = 4096;

std::string rank_file(int64_t rank) {
  return cat("rank", rank, ".safetensors");
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// The number of files there must be.
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

}  // namespace

ScaleStore store_of(const Checkpoint& checkpoint) {
  ScaleStore store;
  store.where = quote(checkpoint.folder().string());
  for (const auto& [name, location] : checkpoint.tensors()) {
    const TensorEntry& entry = location.entry;
    const uint64_t place = (uint64_t{location.shard} << 40) + entry.begin;
    store.tensors.push_back({name, entry.dtype, entry.shape, place});
  }
  store.read = [&checkpoint](const std::string& name) { return checkpoint.read(name); };
  store.observation = [&checkpoint](const std::string& name) -> std::string {
    const Shard& shard = checkpoint.shards()[checkpoint.tensors().at(name).shard];
    const auto found = shard.header.metadata.find(kObservationKey);
    return found == shard.header.metadata.end() ? "" : found->second;
  };
  store.config = [&checkpoint] {
    return read_kv_config(checkpoint.config(), read_hf_quant(checkpoint.folder()));
  };
  store.model = [&checkpoint] { return describe_model(checkpoint.config()); };
  return store;
}

bool is_rank_folder(const fs::path& folder) {
  return is_there(folder / "config.json") && is_there(folder / rank_file(0)) &&
         !is_there(folder / "model.safetensors") &&
         !is_there(folder / "model.safetensors.index.json");
}

ScaleStore open_rank_folder(const fs::path& folder) {
  const Json config = Json::read(folder / "config.json");
  const int64_t n_ranks = count_ranks(config);
  ScaleStore store;
  store.carrier = Carrier::rank_folder;
  store.where = quote(folder.string());
  std::vector<RankFile> ranks;
  for (int64_t rank = 0; rank < n_ranks; ++rank) {
    const fs::path path = folder / rank_file(rank);
    if (!is_there(path)) {
      throw Error(cat(store.where, ": has no ", rank_file(rank),
                      ", though mapping.tp_size in config.json is ", n_ranks),
                  "copy the whole folder");
    }
    ranks.push_back(open_rank(path));
  }
  store.tensors = tensors_of_ranks(ranks);
  store.read = [ranks](const std::string& name) { return read_in_ranks(ranks, name); };
  store.config = [config] { return read_trtllm_config(config); };
  store.model = [config] { return describe_model(config); };
  return store;
}

}  // namespace fp8kv
