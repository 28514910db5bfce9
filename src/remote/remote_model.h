// A remote model as a local folder with what a command needs of it (see
// checkpoint/partial_folder.h). Never holds all of its weights.
#pragma once

#include <filesystem>
#include <memory>

#include "base/log.h"
#include "files/output/staged_directory.h"
#include "remote/remote_address.h"
#include "remote/remote_reader.h"

namespace fp8kv {

class RemoteModel {
 public:
  // Reads what `reader` reads, except what the cache holds, and logs how much that was. The result
  // is temporary, and gone with the RemoteModel, without `use_cache` and for a server that does not
  // tell versions. Throws like RemoteFiles, and for faults in the model's files.
  static RemoteModel read(const RemoteAddress& address, const RemoteReader& reader, bool use_cache,
                          Log& log);

  const std::filesystem::path& folder() const { return folder_; }

 private:
  friend class RemoteReading;

  std::filesystem::path folder_;
  std::unique_ptr<StagedDirectory> staged_;  // the temporary folder, if the result is not kept
};

}  // namespace fp8kv
