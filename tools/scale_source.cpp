#include "scale_source.h"

#include "base/error.h"
#include "io/dialects.h"
#include "io/fingerprint.h"
#include "io/scale_file.h"

namespace fp8kv {

KvScales load_scales(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) return scales_at(Checkpoint::open(path)).scales;
  return read_scale_file(path);
}

void check_made_for(const KvScales& scales, const Checkpoint& checkpoint, const ModelConfig& config,
                    const std::string& source) {
  check_fits(scales, config, source);
  const std::string& made_for = scales.provenance.model_fingerprint;
  if (made_for.empty()) return;
  const std::string found = model_fingerprint(checkpoint, config);
  if (made_for == found) return;
  throw Error(cat(source, ": was calibrated on a model with other K and V projections (", made_for,
                  "), this model has ", found),
              "calibrate this model; scales of a base model do not fit its fine-tunes");
}

}  // namespace fp8kv
