#include "remote/remote_reader.h"

#include <system_error>

#include "base/error.h"
#include "files/output/write_file.h"

namespace fp8kv {
namespace fs = std::filesystem;

void add_whole_file(const fs::path& folder, const std::string& name, const RemoteBytes& bytes,
                    PartialRecord& record) {
  if (bytes.absent) return;
  write_new_file(folder / name, bytes.bytes);
  PartialFile& file = record.files[name];
  file.bytes = bytes.bytes.size();
  file.etag = bytes.etag;
  file.add(0, file.bytes);
}

std::string recorded_address(const RemoteFiles& files) {
  if (files.commit().empty()) return files.address().text();
  return cat("hf://", files.address().hub->repo, "@", files.commit());
}

void write_partial_record(const fs::path& folder, const PartialRecord& record) {
  std::error_code ignored;
  fs::remove(folder / kPartialRecord, ignored);
  write_new_file(folder / kPartialRecord, partial_record_text(record));
}

}  // namespace fp8kv
