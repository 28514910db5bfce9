#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "checkpoint/files/mistral_names.h"
#include "checkpoint/hf_quant.h"
#include "config/values/language_config.h"
#include "files/file.h"

namespace fp8kv {
namespace fs = std::filesystem;

struct Checkpoint::Mappings {
  std::mutex mutex;
  std::vector<std::optional<MappedFile>> files;  // one per shard
  // The shard last read from, kept open. A layer's tensors lie together, and a model may have more
  // shards than a process may open files.
  std::optional<std::pair<size_t, InputFile>> input;
  std::optional<Json> hf_quant;
  bool hf_quant_is_read = false;
};

namespace {

constexpr const char* kFetchWeights =
    "what needs weights needs them here: hf download OWNER/NAME --local-dir FOLDER";

void check_folder(const fs::path& folder) {
  const std::string shown = quote(folder.string());
  std::error_code error;
  const fs::file_type type = fs::status(folder, error).type();
  if (type == fs::file_type::not_found) {
    throw Error(cat(shown, ": no such folder"),
                "check the path; a model of the Hugging Face Hub is fetched with: hf download "
                "OWNER/NAME --local-dir FOLDER");
  }
  if (type == fs::file_type::none) fail_system(folder.string(), "open", error.value());
  if (type != fs::file_type::directory) {
    throw Error(cat(shown, ": is a file, expected a model folder"),
                "pass the folder that holds config.json and the weights");
  }
  if (entry_exists(folder / form_of(folder).config)) return;
  const bool hub_cache = entry_exists(folder / "snapshots");
  throw Error(cat(shown, ": has no config.json, so it is not a Hugging Face model folder"),
              hub_cache ? "this is an entry of the hub's cache: pass one of the folders in its "
                          "'snapshots'"
                        : "pass the folder that holds config.json and the weights");
}

// Throws for a link whose target is gone, such as a link of the hub's cache without its blob.
void check_link(const fs::path& path) {
  std::error_code ignored;
  if (fs::exists(path, ignored) || !fs::is_symlink(path, ignored)) return;
  throw Error(cat(quote(path.string()), ": is a symbolic link to ",
                  quote(fs::read_symlink(path, ignored).string()), ", which is not there"),
              kFetchAgain);
}

}  // namespace

Checkpoint::Checkpoint(Json config)
    : config_(std::move(config)), mappings_(std::make_shared<Mappings>()) {}

Checkpoint Checkpoint::open(const fs::path& folder) {
  check_folder(folder);
  const FolderForm& form = form_of(folder);
  // The config of Mistral's form needs the dtype of the weights.
  Checkpoint checkpoint(form.of_mistral ? Json::parse("{}", "") : read_config(folder));
  checkpoint.folder_ = folder;
  checkpoint.form_ = form;
  WeightFiles weights = find_weight_files(folder, form);
  checkpoint.index_ = std::move(weights.index);
  checkpoint.partial_ = read_partial_record(folder);
  checkpoint.open_shards(weights.files);
  if (checkpoint.index_) checkpoint.check_index();
  if (form.of_mistral) checkpoint.read_mistral_form();
  return checkpoint;
}

void Checkpoint::open_shards(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    const fs::path path = folder_ / file;
    check_link(path);
    const InputFile input(path);
    shards_.push_back({file, input.size(), input.stamp(), read_safetensors_header(input, path)});
    for (const TensorEntry& entry : shards_.back().header.tensors) {
      const auto [at, is_new] =
          tensors_.emplace(entry.name, TensorLocation{shards_.size() - 1, entry});
      if (is_new) continue;
      throw Error(cat(quote(folder_.string()), ": the tensor ", quote(entry.name), " is both in ",
                      quote(shards_[at->second.shard].file), " and in ", quote(file)),
                  "one of the two files does not belong to this model");
    }
  }
  mappings_->files.resize(shards_.size());
}

void Checkpoint::check_index() const {
  const Json weight_map = index_->at("weight_map");
  for (size_t i = 0; i < weight_map.size(); ++i) {
    const std::string& name = weight_map.key(i);
    const std::string file = weight_map.value(i).as_string();
    const auto found = tensors_.find(name);
    if (found != tensors_.end() && shards_[found->second.shard].file == file) continue;
    const std::string holder =
        found == tensors_.end() ? "no shard" : quote(shards_[found->second.shard].file);
    throw Error(cat(quote((folder_ / form_.index).string()), ": places the tensor ", quote(name),
                    " in ", quote(file), ", but ", holder, " holds it"),
                "the index and the shards are not of the same model: fetch it again");
  }
}

// Makes the config of transformers, and gives all tensors the names of transformers, here and in
// the headers of the shards.
void Checkpoint::read_mistral_form() {
  // No tool quantises norms.
  const TensorEntry* const norm = find("norm.weight");
  config_ = read_config(folder_, norm ? std::string(torch_name(norm->dtype)) : "");
  const Json text = language_config(config_);
  const bool has_images = wrapped_config(config_).has_value();
  tensors_.clear();
  for (size_t i = 0; i < shards_.size(); ++i) {
    const std::string file = quote((folder_ / shards_[i].file).string());
    for (TensorEntry& entry : shards_[i].header.tensors) {
      const auto name = name_in_transformers(entry.name, has_images ? "language_model." : "");
      if (!name && !(has_images && is_of_images(entry.name))) {
        throw Error(cat(file, ": tensor ", quote(entry.name), ": is not known in Mistral's format"),
                    "use the folder in the format of Hugging Face, if the model is published in "
                    "it too");
      }
      if (name) entry.name = *name;
      const RowOrder rows = with_context(file, [&] { return row_order_of(entry, text); });
      tensors_.emplace(entry.name, TensorLocation{i, entry, rows});
    }
  }
}

std::string Checkpoint::name_in_file(const std::string& name) const {
  return form_.of_mistral ? name_in_mistral(name) : name;
}

std::optional<Json> Checkpoint::hf_quant() const {
  const std::lock_guard lock(mappings_->mutex);
  if (!mappings_->hf_quant_is_read) mappings_->hf_quant = read_hf_quant(folder_);
  mappings_->hf_quant_is_read = true;
  return mappings_->hf_quant;
}

const TensorLocation& Checkpoint::location(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, ignored] : tensors_) names.push_back(name_in_file(known));
  const std::string own = name_in_file(name);
  fail(quote(folder_.string()), ": has no tensor ", quote(own), did_you_mean(own, names));
}

const TensorEntry* Checkpoint::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second.entry;
}

const TensorEntry& Checkpoint::at(const std::string& name) const {
  return location(name).entry;
}

MappedTensor Checkpoint::map(const std::string& name) const {
  const TensorLocation& place = location(name);
  check_present(name, place.entry.begin, place.entry.end);
  const Shard& shard = shards_[place.shard];
  std::shared_ptr<const void> keep_alive;
  const std::byte* data = nullptr;
  {
    const std::lock_guard lock(mappings_->mutex);
    std::optional<MappedFile>& file = mappings_->files[place.shard];
    if (!file) file = MappedFile::open(folder_ / shard.file);
    fp8kv::check_unchanged(file->path(), shard.stamp);
    data = file->bytes().data() + place.entry.begin;
    keep_alive = file->keep_alive();
  }
  const TensorEntry& entry = place.entry;
  const bool is_aligned = reinterpret_cast<uintptr_t>(data) % dtype_bytes(entry.dtype) == 0;
  if (!is_aligned || place.rows.is_other()) {
    const size_t bytes = static_cast<size_t>(entry.end - entry.begin);
    const std::shared_ptr<std::byte[]> copy(new std::byte[bytes]);
    if (place.rows.is_other()) {
      copy_in_order(place.rows, data, bytes, copy.get());
    } else {
      std::memcpy(copy.get(), data, bytes);
    }
    data = copy.get();
    keep_alive = copy;
  }
  return {ConstTensorView(data, entry.dtype, entry.shape), std::move(keep_alive)};
}

std::string Checkpoint::read(const std::string& name) const {
  const TensorEntry& entry = at(name);
  return read(name, 0, entry.end - entry.begin);
}

std::string Checkpoint::read(const std::string& name, uint64_t offset, uint64_t length) const {
  const TensorLocation& place = location(name);
  const TensorEntry& entry = place.entry;
  FP8KV_ASSERT(offset <= entry.end - entry.begin && length <= entry.end - entry.begin - offset);
  if (!place.rows.is_other()) {
    check_present(name, entry.begin + offset, entry.begin + offset + length);
    return input(place.shard).read(entry.begin + offset, length);
  }
  std::string bytes;
  while (bytes.size() < length) {
    const uint64_t at = offset + bytes.size(), inside = at % place.rows.row_bytes;
    const auto row = static_cast<int64_t>(at / place.rows.row_bytes);
    const uint64_t run = std::min(place.rows.row_bytes - inside, length - bytes.size());
    const uint64_t from = entry.begin + inside +
                          static_cast<uint64_t>(place.rows.in_file(row)) * place.rows.row_bytes;
    check_present(name, from, from + run);
    bytes += input(place.shard).read(from, run);
  }
  return bytes;
}

void Checkpoint::check_present(const std::string& name, uint64_t begin, uint64_t end) const {
  if (!partial_) return;
  const std::string& file = shards_[location(name).shard].file;
  const auto found = partial_->files.find(file);
  if (found == partial_->files.end() || found->second.has(begin, end)) return;
  throw Error(cat(quote(partial_->address), ": the tensor ", quote(name), " of ", quote(file),
                  " was not read from there: only headers and KV scales were"),
              kFetchWeights);
}

fs::path Checkpoint::named() const {
  constexpr std::string_view kHub = "hf://";
  if (!partial_) return folder_;
  if (!partial_->address.starts_with(kHub)) return "FOLDER";
  return partial_->address.substr(kHub.size(), partial_->address.find('@') - kHub.size());
}

void Checkpoint::check_has_weights() const {
  if (!partial_) return;
  throw Error(cat(quote(folder_.string()), ": has headers and KV scales of ",
                  quote(partial_->address), ", and no weights"),
              kFetchWeights);
}

void Checkpoint::check_is_hugging_face() const {
  if (!form_.of_mistral) return;
  throw Error(cat(quote(folder_.string()), ": is in Mistral's own format (", form_.config,
                  "), expected the format of Hugging Face: it is not known how runtimes read ",
                  "scales in this one"),
              "use the folder with config.json and model.safetensors if the model is published in "
              "it too, or convert it with the script of transformers; a scale file of either "
              "folder is for both");
}

void Checkpoint::check_unchanged() const {
  for (const Shard& shard : shards_) fp8kv::check_unchanged(folder_ / shard.file, shard.stamp);
  const std::lock_guard lock(mappings_->mutex);
  for (const std::optional<MappedFile>& file : mappings_->files) {
    if (file) file->check_unchanged();
  }
}

InputFile Checkpoint::input(size_t shard) const {
  const std::lock_guard lock(mappings_->mutex);
  auto& last = mappings_->input;
  if (last && last->first == shard) return last->second;
  const fs::path path = folder_ / shards_[shard].file;
  last.emplace(shard, InputFile(path));
  fp8kv::check_unchanged(path, shards_[shard].stamp);
  return last->second;
}

}  // namespace fp8kv
