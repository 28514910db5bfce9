// The program's own cache of remote models, with a folder for each commit of a model on the hub,
// and for each version of a folder elsewhere. An entry never changes, so none goes out of date.
// Opens no connection.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "checkpoint/files/partial_folder.h"
#include "checkpoint/hub_models.h"
#include "remote/hub_settings.h"
#include "remote/remote_address.h"

namespace fp8kv {

// XDG_CACHE_HOME/fp8kv, else ~/.cache/fp8kv; "" if both are unknown.
std::filesystem::path remote_cache(const Variables& variable = environment_variable);

// One kind of content of one model in the cache.
class CachedModel {
 public:
  // `suffix` tells kinds of content apart.
  CachedModel(const std::filesystem::path& cache, const RemoteAddress& address,
              const HubSettings& settings, std::string suffix);

  // A version is a commit of the hub, or folder_version.
  std::filesystem::path folder_of(const std::string& version) const;
  // A name in the same folder that no version has. Makes that folder.
  std::filesystem::path unnamed_folder() const;
  // The commit in the address, or else the version that the address last stood for.
  std::optional<std::string> find_version() const;
  void note_version(const std::string& version) const;

 private:
  std::filesystem::path entry_, reference_;
  std::string suffix_;
  std::optional<std::string> commit_;  // the commit in the address
};

bool is_commit(const std::string& revision);

// The version of a folder that is not on the hub: a digest of its files' names and ETags, spelled
// like a commit. nullopt unless every file has a strong ETag.
std::optional<std::string> folder_version(const PartialRecord& record);

}  // namespace fp8kv
