#include "io/scale_store.h"

#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "io/architectures.h"
#include "io/scale_tensors.h"

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

// The files of a TensorRT-LLM checkpoint. All have the same KV scales.
class Ranks {
 public:
  explicit Ranks(const fs::path& folder)
      : where_(quote(folder.string())), config_(Json::read(folder / "config.json")) {
    const int64_t n_ranks = check_mapping();
    for (int64_t rank = 0; rank < n_ranks; ++rank) {
      const fs::path path = folder / rank_file(rank);
      if (!is_there(path)) {
        throw Error(cat(where_, ": has no ", rank_file(rank),
                        ", though mapping.tp_size in config.json is ", n_ranks),
                    "copy the whole folder");
      }
      InputFile file(path);
      SafetensorsHeader header = read_safetensors_header(file, path);
      std::map<std::string, TensorEntry> entries;
      for (TensorEntry& entry : header.tensors) entries.emplace(entry.name, entry);
      ranks_.push_back({std::move(file), std::move(entries)});
    }
  }

  const Json& config() const { return config_; }
  const std::string& where() const { return where_; }

  std::vector<StoredTensor> tensors() const {
    std::map<std::string, StoredTensor> all;
    for (const Rank& rank : ranks_) {
      for (const auto& [name, entry] : rank.entries) {
        all.emplace(name, StoredTensor{name, entry.dtype, entry.shape, entry.begin});
      }
    }
    std::vector<StoredTensor> out;
    for (auto& [name, tensor] : all) out.push_back(std::move(tensor));
    return out;
  }

  std::string read(const std::string& name) const {
    std::string first;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      const TensorEntry& entry = entry_at(rank, name);
      const std::string bytes = ranks_[rank].file.read(entry.begin, entry.end - entry.begin);
      if (rank == 0) first = bytes;
      if (entry.dtype != entry_at(0, name).dtype || bytes != first) {
        fail_apart(name, rank, first, bytes);
      }
    }
    return first;
  }

 private:
  struct Rank {
    InputFile file;
    std::map<std::string, TensorEntry> entries;
  };

  // The number of files there must be.
  int64_t check_mapping() const {
    const auto mapping = config_.find("mapping");
    if (!mapping) return 1;
    if (const auto pipeline = mapping->find("pp_size"); pipeline && pipeline->as_int() != 1) {
      throw Error(cat(pipeline->where(), ": is ", pipeline->brief(), ", expected 1"),
                  "layers are numbered anew in each pipeline rank: convert the checkpoint with "
                  "pp_size 1");
    }
    const int64_t n_ranks = mapping->get_int("tp_size", 1);
    if (n_ranks < 1 || n_ranks > 4096) {
      fail(mapping->where(), ".tp_size: is ", n_ranks, ", expected 1 to 4096");
    }
    return n_ranks;
  }

  const TensorEntry& entry_at(size_t rank, const std::string& name) const {
    const auto found = ranks_[rank].entries.find(name);
    if (found != ranks_[rank].entries.end()) return found->second;
    throw Error(cat(quote(name), ": is missing from ", rank_file(static_cast<int64_t>(rank)),
                    ", but another rank has it"),
                "copy the whole folder");
  }

  [[noreturn]] void fail_apart(const std::string& name, size_t rank, const std::string& first,
                               const std::string& other) const {
    const auto shown = [&](const std::string& bytes, const TensorEntry& entry) {
      const bool number = entry.shape.elements() == 1 && is_compute_dtype(entry.dtype);
      return number ? cat(scale_numbers(bytes, entry.dtype)[0])
                    : cat(dtype_name(entry.dtype), " ", entry.shape.text());
    };
    throw Error(cat(quote(name), " is ", shown(first, entry_at(0, name)), " in ", rank_file(0),
                    " and ", shown(other, entry_at(rank, name)), " in ",
                    rank_file(static_cast<int64_t>(rank)), ", expected the same in every rank"),
                "scales of one tensor-parallel split serve no other: calibrate again");
  }

  std::string where_;
  Json config_;
  std::vector<Rank> ranks_;
};

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
  store.config = [&checkpoint] {
    return read_kv_config(checkpoint.config(), find_hf_quant(checkpoint.folder()));
  };
  store.model = [&checkpoint] { return parse_model_shape(checkpoint.config()); };
  return store;
}

bool is_rank_folder(const fs::path& folder) {
  return is_there(folder / "config.json") && is_there(folder / rank_file(0)) &&
         !is_there(folder / "model.safetensors") &&
         !is_there(folder / "model.safetensors.index.json");
}

ScaleStore open_rank_folder(const fs::path& folder) {
  const auto ranks = std::make_shared<const Ranks>(folder);
  ScaleStore store;
  store.carrier = Carrier::rank_folder;
  store.where = ranks->where();
  store.tensors = ranks->tensors();
  store.read = [ranks](const std::string& name) { return ranks->read(name); };
  store.config = [ranks] { return read_trtllm_config(ranks->config()); };
  store.model = [ranks] { return parse_model_shape(ranks->config()); };
  return store;
}

}  // namespace fp8kv
