// A remote model as a local folder with its configs, the headers of its shards and the requested
// tensors (see checkpoint/partial_folder.h). Never holds all of its weights.
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
  // Reads everything that the cache does not hold, and logs how much that was. The result is
  // temporary, and gone with the RemoteModel, without `use_cache` and for folders outside of a hub,
  // whose files can change. Throws like RemoteFiles, and for faults in the model's files.
  static RemoteModel read(const RemoteAddress& address, bool use_cache, const NeededTensors& needed,
                          Log& log);

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  std::unique_ptr<StagedDirectory> staged_;  // the temporary folder, if the result is not kept
};

}  // namespace fp8kv
