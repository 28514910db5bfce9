#include "scales/read/stores/npz_store.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/error.h"
#include "core/model/model_description.h"
#include "formats/npz.h"
#include "json/json.h"
#include "scales/read/stores/scale_ranks.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kScaleName = "kv_cache_scaling_factor";
constexpr int64_t kMostHeads = 65536;

// The names in `folder` with the given extension, sorted.
std::vector<std::string> files_with(const fs::path& folder, std::string_view ending) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ending) names.push_back(at->path().filename().string());
  }
  if (error) fail_system(folder.string(), "list", error.value());
  std::sort(names.begin(), names.end());
  return names;
}

// "llama_tp2_rank1.npz" has rank 1. Returns 0 if the name has no rank.
int64_t rank_of(const std::string& file) {
  const size_t at = file.rfind("rank");
  int64_t rank = 0;
  if (at == file.npos) return 0;
  const char* const digits = file.data() + at + 4;
  const auto parsed = std::from_chars(digits, file.data() + file.size(), rank);
  return parsed.ec == std::errc() && rank >= 0 ? rank : 0;
}

// "_np:layers:12:attention:kv_cache_scaling_factor": exactly one part is a number, the layer.
std::optional<LayerName> split_npz_name(std::string_view name) {
  std::optional<LayerName> found;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find(':', at), name.size());
    const std::string_view part = name.substr(at, end - at);
    int64_t layer = 0;
    const auto parsed = std::from_chars(part.data(), part.data() + part.size(), layer);
    const bool number = !part.empty() && parsed.ec == std::errc() && layer >= 0 &&
                        parsed.ptr == part.data() + part.size() && part[0] != '-';
    if (number && found) return std::nullopt;
    if (number) {
      const std::string_view rest = name.substr(std::min(end + 1, name.size()));
      found = {name.substr(0, at), {}, layer, rest.ends_with(kScaleName) ? kScaleName : rest};
    }
    at = end + 1;
  }
  return found;
}

struct AmmoModel {
  std::string decoder_type;
  int64_t n_layers = 0;
  int64_t n_kv_heads = 0;
  int64_t n_ranks = 1;
  bool operator==(const AmmoModel&) const = default;
};

int64_t within(const Json& value, int64_t least, int64_t most) {
  const int64_t number = value.as_int();
  if (number >= least && number <= most) return number;
  fail(value.where(), ": is ", number, ", expected ", least, " to ", most);
}

AmmoModel parse_ammo_model(const Json& json) {
  AmmoModel model;
  model.n_ranks = within(json.at("tensor_parallel"), 1, kMostTpRanks);
  const auto pipeline = json.find("pipeline_parallel");
  if (pipeline && pipeline->as_int() != 1) {
    throw Error(cat(pipeline->where(), ": is ", pipeline->brief(), ", expected 1"),
                "layers are numbered anew in each pipeline rank: export with one");
  }
  const Json layers = json.at("layers");
  model.n_layers = static_cast<int64_t>(layers.size());
  if (layers.size() == 0 || model.n_layers > kMostLayers) {
    fail(layers.where(), ": is ", layers.brief(), ", expected an array of layers");
  }
  model.decoder_type = layers[0].get_string("decoder_type", "");
  const auto kv_heads = json.find("num_kv_heads");  // 0: as many as query heads
  model.n_kv_heads = kv_heads ? within(*kv_heads, 0, kMostHeads) : 0;
  const auto heads = json.find("num_attention_heads");
  if (heads && model.n_kv_heads == 0) model.n_kv_heads = within(*heads, 0, kMostHeads);
  return model;
}

// Reads the model from the folder's JSON files. Each describes the whole model, and all must agree.
AmmoModel read_ammo_model(const fs::path& folder) {
  std::optional<AmmoModel> found;
  std::string from;
  for (const std::string& file : files_with(folder, ".json")) {
    const Json json = Json::read(folder / file, JsonNumbers::python);
    if (!json.has("layers") || !json.has("tensor_parallel")) continue;
    const AmmoModel model = parse_ammo_model(json);
    if (found && !(model == *found)) {
      throw Error(cat(quote(folder.string()), ": ", quote(from), " and ", quote(file),
                      " describe different models"),
                  "keep the files of one checkpoint in a folder");
    }
    found = model;
    from = file;
  }
  if (found) return *found;
  throw Error(cat(quote(folder.string()),
                  ": has .npz files, but no JSON file with 'layers' and 'tensor_parallel' that "
                  "describes them"),
              "copy the whole folder");
}

RankFile open_npz(const fs::path& path) {
  const Npz npz = Npz::open(path);
  RankFile rank;
  rank.name = path.filename().string();
  for (const std::string& name : npz.names()) {
    StoredTensor tensor{name, DType::f32, {}, 0};
    if (looks_like_kv_scale(name)) {
      const NpyArray array = npz.read(name);
      tensor.dtype = array.dtype;
      tensor.shape = array.shape;
    }
    rank.tensors.emplace(name, std::move(tensor));
  }
  rank.read = [npz](const std::string& name) { return npz.read(name).bytes; };
  return rank;
}

// The files of all ranks. Throws if a rank is missing or has two files.
std::vector<RankFile> open_npz_ranks(const fs::path& folder, int64_t n_ranks) {
  const std::string where = quote(folder.string());
  std::map<int64_t, std::string> files;
  for (const std::string& file : files_with(folder, ".npz")) {
    const auto [at, is_new] = files.emplace(rank_of(file), file);
    if (is_new) continue;
    throw Error(
        cat(where, ": ", quote(at->second), " and ", quote(file), " are both of rank ", at->first),
        "keep the files of one checkpoint in a folder");
  }
  std::vector<RankFile> ranks;
  for (int64_t rank = 0; rank < n_ranks; ++rank) {
    const auto found = files.find(rank);
    if (found == files.end()) {
      throw Error(
          cat(where, ": has no .npz file of rank ", rank, ", though tensor_parallel is ", n_ranks),
          "copy the whole folder");
    }
    ranks.push_back(open_npz(folder / found->second));
  }
  return ranks;
}

class NpzStore : public ScaleStore {
 public:
  NpzStore(const fs::path& folder, AmmoModel model)
      : where_(quote(folder.string())),
        model_(std::move(model)),
        ranks_(open_npz_ranks(folder, model_.n_ranks)),
        tensors_(tensors_of_ranks(ranks_)) {}

  Carrier carrier() const override { return Carrier::npz_folder; }
  std::string where() const override { return where_; }
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  std::string read(const std::string& tensor) const override {
    return read_in_ranks(ranks_, tensor);
  }
  std::optional<LayerName> split(std::string_view tensor) const override {
    return split_npz_name(tensor);
  }
  Observation noted_observation(const std::string&) const override { return Observation::unknown; }
  KvConfig config() const override {
    KvConfig config;
    config.method = QuantMethod::ammo;
    config.producer = "AMMO";
    return config;
  }
  // AMMO knows no layers without a cache.
  StoredModel model() const override {
    return {model_.decoder_type, model_.n_kv_heads,
            std::vector<bool>(static_cast<size_t>(model_.n_layers), true)};
  }

 private:
  std::string where_;
  AmmoModel model_;
  std::vector<RankFile> ranks_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace

bool is_npz_folder(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder, ignored) && !fs::exists(folder / "config.json", ignored) &&
         !files_with(folder, ".npz").empty();
}

std::unique_ptr<ScaleStore> open_npz_folder(const fs::path& folder) {
  return std::make_unique<NpzStore>(folder, read_ammo_model(folder));
}

}  // namespace fp8kv
