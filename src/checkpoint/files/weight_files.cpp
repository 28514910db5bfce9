#include "checkpoint/files/weight_files.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "checkpoint/files/partial_folder.h"
#include "files/file.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

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

[[noreturn]] void fail_without_weights(const fs::path& folder, const FolderForm& form) {
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
    throw Error(cat(shown, ": has neither ", form.single, " nor ", form.index,
                    " to say which of its .safetensors files are the model (the first is ",
                    quote(others.front()), ")"),
                "fetch the model again: hf download OWNER/NAME --local-dir FOLDER");
  }
  throw Error(cat(shown, ": has no weights, expected ", form.single, " or ", form.index),
              "fetch the model again: hf download OWNER/NAME --local-dir FOLDER");
}

bool stays_inside(const std::string& file) {
  const fs::path path = file;
  if (path.is_absolute() || file.find('\0') != file.npos || file.find('\\') != file.npos) {
    return false;
  }
  return std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

void check_all_there(const fs::path& folder, const std::string& named_by,
                     const std::vector<std::string>& files) {
  std::vector<std::string> missing;
  for (const std::string& file : files) {
    if (!entry_exists(folder / file)) missing.push_back(file);
  }
  if (missing.empty()) return;
  const std::string others =
      missing.size() == 1 ? "" : cat(" and ", count_of(missing.size() - 1, "other"));
  throw Error(cat(quote((folder / named_by).string()), ": names the shard ", quote(missing.front()),
                  others, ", which the folder does not have"),
              kFetchAgain);
}

// The shards "consolidated-00001-of-00002.safetensors" of a folder, whose names say how many there
// are. Returns none if the folder has no such file.
std::vector<std::string> numbered_shards(const fs::path& folder) {
  constexpr std::string_view kBegin = "consolidated-", kEnd = ".safetensors";
  const auto found = entries(folder, [&](const std::string& name) {
    return name.starts_with(kBegin) && name.ends_with(kEnd);
  });
  if (found.empty()) return {};
  constexpr size_t kDigits = 5;
  constexpr std::string_view kPattern = "consolidated-NNNNN-of-NNNNN.safetensors";
  const std::string total = found.front().substr(
      std::min(found.front().size(), kBegin.size() + kDigits + std::string_view("-of-").size()),
      kDigits);
  int count = 0;
  for (const char c : total) count = c >= '0' && c <= '9' ? 10 * count + (c - '0') : -1;
  std::vector<std::string> shards;
  for (int i = 1; i <= count; ++i) {
    const std::string number = std::to_string(i);
    shards.push_back(cat(kBegin, std::string(kDigits - std::min(kDigits, number.size()), '0'),
                         number, "-of-", total, kEnd));
  }
  for (const std::string& name : found) {
    if (std::find(shards.begin(), shards.end(), name) != shards.end()) continue;
    throw Error(cat(quote((folder / name).string()), ": is not one of the shards of ",
                    quote(found.front()), ", expected names like ", quote(kPattern)),
                "remove files of other models from the folder, or fetch the model again: hf "
                "download OWNER/NAME --local-dir FOLDER");
  }
  check_all_there(folder, found.front(), shards);
  return shards;
}

}  // namespace

const FolderForm& form_of(const fs::path& folder) {
  const bool of_mistral =
      !entry_exists(folder / kHuggingFaceForm.config) && entry_exists(folder / kMistralForm.config);
  return of_mistral ? kMistralForm : kHuggingFaceForm;
}

Json read_config(const fs::path& folder, const std::string& dtype) {
  const FolderForm& form = form_of(folder);
  Json config = Json::read(folder / form.config, JsonNumbers::python);
  if (!config.is_object()) {
    fail(config.where(), ": is ", config.brief(), ", expected an object");
  }
  return form.of_mistral ? config_of_mistral(config, dtype) : config;
}

bool entry_exists(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

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

WeightFiles find_weight_files(const fs::path& folder, const FolderForm& form) {
  const bool has_single = entry_exists(folder / form.single);
  const bool has_index = entry_exists(folder / form.index);
  WeightFiles out{{form.single}, std::nullopt};
  if (!has_single && !has_index) {
    out.files = form.of_mistral ? numbered_shards(folder) : std::vector<std::string>();
    if (out.files.empty()) fail_without_weights(folder, form);
  }
  if (!has_index) return out;
  Json index = Json::read(folder / form.index);
  std::vector<std::string> named = files_of_index(index);
  if (has_single && std::find(named.begin(), named.end(), form.single) == named.end()) return out;
  check_all_there(folder, form.index, named);
  return {std::move(named), std::move(index)};
}

}  // namespace fp8kv
