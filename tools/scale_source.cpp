#include "scale_source.h"

#include "base/text.h"
#include "io/dialects.h"
#include "io/scale_file.h"

namespace fp8kv {

KvScales load_scales(const std::filesystem::path& path, Log& log) {
  if (!std::filesystem::is_directory(path)) {
    KvScales scales = read_scale_file(path);
    const ShardNote& shards = scales.provenance.shards;
    if (shards.of > 0) {
      log.warn(cat(quote(path.string()), ": is of ", shards.taken.size(), " of ",
                   count_of(shards.of, "shard"), " of a calibration; 'fp8kv merge' adds the rest"));
    }
    return scales;
  }
  FoundScales found = scales_at(Checkpoint::open(path));
  for (const std::string& note : found.notes) log.note("note: " + note);
  return std::move(found.scales);
}

}  // namespace fp8kv
