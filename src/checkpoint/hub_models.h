// Models by the name that they have on the Hugging Face Hub, found where its own tools keep what
// they fetched. Nothing is fetched here.
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

// Of "org/name", "org/name@revision" or "name"; nullopt for what can be none.
// Source: huggingface_hub 2.4, utils/_validators.py, validate_repo_id.
std::optional<HubName> hub_name(std::string_view text);

// A variable of the environment; "" where it is not set.
using Variables = std::function<std::string(const char* name)>;
std::string environment_variable(const char* name);

// Where huggingface_hub keeps models: HF_HUB_CACHE, or else HUGGINGFACE_HUB_CACHE, or else the
// folder hub in HF_HOME, in XDG_CACHE_HOME/huggingface or in ~/.cache/huggingface. Source:
// huggingface_hub 2.4, constants.py.
std::filesystem::path hub_cache(const Variables& variable = environment_variable);

// The folder of the model that `given` means: a path that is there as it is, but of a model's entry
// in the hub's cache its revision main; else a name on the hub, of what is in the cache. What can
// be neither stays as it is. Throws, with the line that fetches it, for a name of two parts that is
// not in the cache, for a revision that is not, and for a snapshot that is not whole, naming what
// lacks.
std::filesystem::path find_model(const std::filesystem::path& given,
                                 const Variables& variable = environment_variable);

// The same for what must be a model: of one of its .safetensors files, the folder it is in.
std::filesystem::path model_folder(const std::filesystem::path& given,
                                   const Variables& variable = environment_variable);

}  // namespace fp8kv
