// The files of a folder in the cache, for RemoteFiles to take what a server says is unchanged.
// Opens no connection.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "checkpoint/files/partial_folder.h"
#include "files/file.h"
#include "files/output/copy_file.h"

namespace fp8kv {

// Whether an ETag names exactly one content: it is quoted, and not weak ("W/...").
bool is_strong_etag(const std::string& etag);

class EarlierFiles {
 public:
  EarlierFiles() = default;
  // Opens the files of a folder that have the recorded sizes and strong ETags. Takes none if the
  // folder is missing or damaged. The files stay readable after another process has removed them.
  explicit EarlierFiles(const std::filesystem::path& folder);

  // The ETag of a file if the folder has this range of it; "" if not. The range ends at the end of
  // the file at the latest; nullopt: the whole file.
  std::string etag_of(const std::string& file, const std::optional<ByteRange>& range) const;
  uint64_t file_bytes(const std::string& file) const { return files_.at(file).known.bytes; }
  // REQUIRES a range for which etag_of has an ETag.
  std::string read(const std::string& file, const std::optional<ByteRange>& range) const;

 private:
  struct Earlier {
    PartialFile known;
    InputFile input;
  };
  std::map<std::string, Earlier> files_;
};

}  // namespace fp8kv
