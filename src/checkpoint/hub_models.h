// Finds models by their name on the Hugging Face Hub, in the cache where the hub's own tools keep
// what they fetched. Fetches nothing.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace fp8kv {

struct HubName {
  std::string repo;      // "org/name"
  std::string revision;  // a branch, a tag or a commit; "main" unless given
};

// Parses "org/name", "org/name@revision" or "name"; nullopt for any other text. Source:
// huggingface_hub 2.4, utils/_validators.py, validate_repo_id.
std::optional<HubName> hub_name(std::string_view text);

// Looks up an environment variable; "" if it is not set.
using Variables = std::function<std::string(const char* name)>;
std::string environment_variable(const char* name);

// The folder where huggingface_hub keeps models: HF_HUB_CACHE, else HUGGINGFACE_HUB_CACHE, else the
// folder hub in HF_HOME, in XDG_CACHE_HOME/huggingface or in ~/.cache/huggingface. Source:
// huggingface_hub 2.4, constants.py.
std::filesystem::path hub_cache(const Variables& variable = environment_variable);

// The folder of the model that `given` means. An existing path stays as it is, but a model's entry
// in the hub's cache means its revision main. Any other name is looked up in the hub's cache. Text
// that is no path and no name stays as it is. Throws, with the command that fetches it, for
// "org/name" that is not in the cache, a missing revision, or an incomplete snapshot. The last
// message names the missing files.
std::filesystem::path find_model(const std::filesystem::path& given,
                                 const Variables& variable = environment_variable);

// Like find_model, if a model is expected: one of its .safetensors files means the folder around
// it.
std::filesystem::path model_folder(const std::filesystem::path& given,
                                   const Variables& variable = environment_variable);

}  // namespace fp8kv
