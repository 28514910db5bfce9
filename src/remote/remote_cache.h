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

// The entry of one model in the cache. REQUIRES an address of the hub.
class CachedModel {
 public:
  CachedModel(const std::filesystem::path& cache, const RemoteAddress& address,
              const HubSettings& settings);

  std::filesystem::path folder_of(const std::string& commit) const { return entry_ / commit; }
  // The commit in the address, or else the commit that the address last stood for.
  std::optional<std::string> find_commit() const;
  void note_commit(const std::string& commit) const;

 private:
  std::filesystem::path entry_, reference_;
  std::string revision_;
};

bool is_commit(const std::string& revision);

}  // namespace fp8kv
