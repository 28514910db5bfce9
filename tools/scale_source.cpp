#include "scale_source.h"

#include "io/dialects.h"
#include "io/scale_file.h"

namespace fp8kv {

KvScales load_scales(const std::filesystem::path& path, Log& log) {
  if (!std::filesystem::is_directory(path)) return read_scale_file(path);
  FoundScales found = scales_at(Checkpoint::open(path));
  for (const std::string& note : found.notes) log.note("note: " + note);
  return std::move(found.scales);
}

}  // namespace fp8kv
