#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "checkpoint/hf_quant.h"
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

constexpr const char* kFetchAgain =
    "copy the file into the folder, or fetch the model again: hf download OWNER/NAME --local-dir "
    "FOLDER";

constexpr const char* kFetchWeights =
    "what needs weights needs them here: hf download OWNER/NAME --local-dir FOLDER";

// Also true for a symbolic link that leads nowhere: that is an error to report, not an absent file.
bool entry_exists(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

// The names in `folder` that `wanted` accepts, sorted.
template <typename Predicate>
std::vector<std::string> entries(const fs::path& folder, Predicate wanted) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (wanted(name)) names.push_back(name);
  }
  if (error) fail_system(folder.string(), "list", error.value());
  std::sort(names.begin(), names.end());
  return names;
}

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
  if (entry_exists(folder / "config.json")) return;
  const bool hub_cache = entry_exists(folder / "snapshots");
  throw Error(cat(shown, ": has no config.json, so it is not a Hugging Face model folder"),
              hub_cache ? "this is an entry of the hub's cache: pass one of the folders in its "
                          "'snapshots'"
                        : "pass the folder that holds config.json and the weights");
}

[[noreturn]] void fail_without_weights(const fs::path& folder) {
  const std::string shown = quote(folder.string());
  const auto pickles = entries(folder, [](const std::string& name) {
    const std::string ending = fs::path(name).extension().string();
    return (ending == ".bin" || ending == ".pt" || ending == ".pth" || ending == ".ckpt") &&
           name != "training_args.bin";
  });
  if (!pickles.empty()) {
    throw Error(
        cat(shown, ": has its weights as pickles only (", quote(pickles.front()),
            "), which can run code when they are read"),
        "convert it to safetensors where you trust it: python -c \"from transformers import "
        "AutoModelForCausalLM as M; M.from_pretrained('FOLDER', torch_dtype='auto')"
        ".save_pretrained('NEW_FOLDER')\", and copy the tokenizer's files");
  }
  const auto others = entries(
      folder, [](const std::string& name) { return fs::path(name).extension() == ".safetensors"; });
  if (std::find(others.begin(), others.end(), "rank0.safetensors") != others.end()) {
    const auto partial = read_partial_record(folder);
    throw Error(cat(partial ? quote(partial->address) : shown,
                    ": is a TensorRT-LLM folder, expected a Hugging Face model folder"),
                "'fp8kv extract', 'inspect' and 'diff' read its scales");
  }
  if (!others.empty()) {
    throw Error(cat(shown, ": has neither ", kSingleFile, " nor ", kIndexFile,
                    " to say which of its .safetensors files are the model (the first is ",
                    quote(others.front()), ")"),
                "fetch the model again: hf download OWNER/NAME --local-dir FOLDER");
  }
  throw Error(cat(shown, ": has no weights, expected ", kSingleFile, " or ", kIndexFile),
              "fetch the model again: hf download OWNER/NAME --local-dir FOLDER");
}

bool stays_inside(const std::string& file) {
  const fs::path path = file;
  if (path.is_absolute() || file.find('\0') != file.npos || file.find('\\') != file.npos) {
    return false;
  }
  return std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

void check_all_there(const fs::path& folder, const std::vector<std::string>& files) {
  std::vector<std::string> missing;
  for (const std::string& file : files) {
    if (!entry_exists(folder / file)) missing.push_back(file);
  }
  if (missing.empty()) return;
  const std::string others =
      missing.size() == 1 ? "" : cat(" and ", count_of(missing.size() - 1, "other"));
  throw Error(cat(quote((folder / kIndexFile).string()), ": names the shard ",
                  quote(missing.front()), others, ", which the folder does not have"),
              kFetchAgain);
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

std::vector<std::string> files_of_index(const Json& index) {
  const Json weight_map = index.at("weight_map");
  if (!weight_map.is_object() || weight_map.size() == 0) {
    fail(weight_map.where(), ": is ", weight_map.brief(),
         ", expected an object of tensor names and files");
  }
  std::set<std::string> files;
  for (size_t i = 0; i < weight_map.size(); ++i) {
    const Json value = weight_map.value(i);
    const std::string& file = value.as_string();
    if (files.contains(file)) continue;
    if (!stays_inside(file)) {
      throw Error(cat(value.where(), ": the file ", quote(file), " is not inside the model folder"),
                  "an index names files by their path below its own folder, such as "
                  "'model-00001-of-00002.safetensors'; get this model from a source you trust");
    }
    if (!file.ends_with(".safetensors")) {
      fail(value.where(), ": is ", quote(file), ", expected the name of a .safetensors file");
    }
    files.insert(file);
  }
  return {files.begin(), files.end()};
}

Checkpoint::Checkpoint(Json config)
    : config_(std::move(config)), mappings_(std::make_shared<Mappings>()) {}

Checkpoint Checkpoint::open(const fs::path& folder) {
  check_folder(folder);
  Checkpoint checkpoint(Json::read(folder / "config.json", JsonNumbers::python));
  checkpoint.folder_ = folder;
  if (!checkpoint.config_.is_object()) {
    fail(checkpoint.config_.where(), ": is ", checkpoint.config_.brief(), ", expected an object");
  }
  const bool has_single = entry_exists(folder / kSingleFile);
  const bool has_index = entry_exists(folder / kIndexFile);
  if (!has_single && !has_index) fail_without_weights(folder);

  std::vector<std::string> files = {kSingleFile};
  if (has_index) {
    Json index = Json::read(folder / kIndexFile);
    const std::vector<std::string> named = files_of_index(index);
    if (!has_single || std::find(named.begin(), named.end(), kSingleFile) != named.end()) {
      files = named;
      checkpoint.index_ = std::move(index);
    }
  }
  check_all_there(folder, files);
  checkpoint.partial_ = read_partial_record(folder);
  checkpoint.open_shards(files);
  if (checkpoint.index_) checkpoint.check_index();
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
    throw Error(cat(quote((folder_ / kIndexFile).string()), ": places the tensor ", quote(name),
                    " in ", quote(file), ", but ", holder, " holds it"),
                "the index and the shards are not of the same model: fetch it again");
  }
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
  for (const auto& [known, ignored] : tensors_) names.push_back(known);
  fail(quote(folder_.string()), ": has no tensor ", quote(name), did_you_mean(name, names));
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
  if (reinterpret_cast<uintptr_t>(data) % dtype_bytes(entry.dtype) != 0) {
    const size_t bytes = static_cast<size_t>(entry.end - entry.begin);
    const std::shared_ptr<std::byte[]> aligned(new std::byte[bytes]);
    std::memcpy(aligned.get(), data, bytes);
    data = aligned.get();
    keep_alive = aligned;
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
  check_present(name, entry.begin + offset, entry.begin + offset + length);
  return input(place.shard).read(entry.begin + offset, length);
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
