#include "scales/read/scale_file_survey.h"

#include "base/text.h"
#include "scales/scale_file.h"

namespace fp8kv {
namespace {

Observation observation_of(const Provenance& provenance, const Dialect* row) {
  if (provenance.observation != Observation::unknown) return provenance.observation;
  const bool likely = row && row->observation(KvConfig{}) == Observation::likely_before_rope;
  return likely ? Observation::likely_before_rope : Observation::unknown;
}

bool is_plain(const Dialect* row) {
  return row && row->carrier == Carrier::json;
}

}  // namespace

FoundScales survey_scale_file(const std::filesystem::path& path) {
  FoundScales found;
  found.scales = read_scale_file(path);
  const Provenance& provenance = found.scales.provenance;
  found.dialect = provenance.source;
  const Dialect* const row = find_dialect(provenance.source);
  const DType dtype = dtype_from_name(provenance.stored_dtype).value_or(DType::f32);
  const auto add = [&](std::string name, size_t layer, ScaleOf kind,
                       const std::vector<float>& values) {
    const Shape shape = values.size() == 1 ? Shape{} : Shape{static_cast<int64_t>(values.size())};
    found.tensors.push_back({std::move(name), static_cast<int64_t>(layer), kind, dtype, shape,
                             values, row, found.dialect});
  };
  std::vector<bool> has_cache;
  for (size_t layer = 0; layer < found.scales.layers.size(); ++layer) {
    const LayerScales& scales = found.scales.layers[layer];
    has_cache.push_back(scales.has_cache());
    if (!scales.has_cache()) continue;
    if (is_plain(row)) {
      add(cat("kv_cache.scaling_factor.0.", layer), layer, ScaleOf::both, scales.k);
    } else {
      add(cat("fp8kv.k_scale[", layer, "]"), layer, ScaleOf::k, scales.k);
      add(cat("fp8kv.v_scale[", layer, "]"), layer, ScaleOf::v, scales.v);
    }
  }
  found.diagnoses = diagnose({.tensors = found.tensors,
                              .dialect = row,
                              .observed = observation_of(provenance, row),
                              .observer = provenance.observer,
                              .floor = row ? row->floor : 0,
                              .format = found.scales.format,
                              .has_cache = has_cache});
  if (is_plain(row)) {
    if (auto gaps = diagnose_gaps(has_cache)) found.diagnoses.push_back(*std::move(gaps));
  }
  return found;
}

}  // namespace fp8kv
