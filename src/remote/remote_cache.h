// The program's own cache of models on the hub, with a folder for each commit. The files of a
// commit never change, so no entry goes out of date. Opens no connection.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "checkpoint/hub_models.h"
#include "remote/hub_settings.h"
#include "remote/remote_address.h"

namespace fp8kv {

// XDG_CACHE_HOME/fp8kv, else ~/.cache/fp8kv; "" if both are unknown.
std::filesystem::path remote_cache(const Variables& variable = environment_variable);

// One kind of content of one model in the cache. REQUIRES an address of the hub.
class CachedModel {
 public:
  // `suffix` tells kinds of content apart.
  CachedModel(const std::filesystem::path& cache, const RemoteAddress& address,
              const HubSettings& settings, std::string suffix);

  // A version is a commit of the hub.
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

}  // namespace fp8kv
