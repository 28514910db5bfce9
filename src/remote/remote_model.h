// A model at an address as a folder on this machine that has its configs, its shards' headers and
// the tensors that were asked for (see checkpoint/partial_folder.h). Never its weights.
#pragma once

#include <filesystem>
#include <memory>

#include "base/log.h"
#include "files/file.h"
#include "remote/read_parts.h"
#include "remote/remote_address.h"

namespace fp8kv {

class RemoteModel {
 public:
  // Reads what the cache does not hold, and says on `log` how much that was. Without `use_cache`,
  // and for folders that are not of a hub, whose files can change, the result is gone with the
  // RemoteModel. Throws what RemoteFiles does, and what is wrong with the model's files.
  static RemoteModel read(const RemoteAddress& address, bool use_cache, const NeededTensors& needed,
                          Log& log);

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  std::unique_ptr<StagedDirectory> staged_;  // of what is not kept
};

}  // namespace fp8kv
