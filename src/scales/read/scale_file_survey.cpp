#include "scales/read/scale_file_survey.h"

#include "base/text.h"
#include "scales/scale_file.h"

namespace fp8kv {
namespace {

Observation observation_of(const Provenance& provenance, const Dialect* row) {
  if (provenance.observation == "pre_rope") return Observation::before_rope;
  if (provenance.observation == "post_rope") return Observation::after_rope;
  const bool likely = row && row->observation(KvConfig{}) == Observation::likely_before_rope;
  return likely ? Observation::likely_before_rope : Observation::unknown;
}

}  // namespace

FoundScales survey_scale_file(const std::filesystem::path& path) {
  FoundScales found;
  found.scales = read_scale_file(path);
  const Provenance& provenance = found.scales.provenance;
  found.dialect = provenance.source;
  const Dialect* const row = find_dialect(provenance.source);
  const bool plain = row && row->carrier == Carrier::json;
  const DType dtype = dtype_from_name(provenance.stored_dtype).value_or(DType::f32);
  const auto add = [&](std::string name, size_t layer, char which, const std::vector<float>& of) {
    const Shape shape = of.size() == 1 ? Shape{} : Shape{static_cast<int64_t>(of.size())};
    found.tensors.push_back({std::move(name), static_cast<int64_t>(layer), which, dtype, shape, of,
                             row, found.dialect});
  };
  for (size_t layer = 0; layer < found.scales.layers.size(); ++layer) {
    const LayerScales& scales = found.scales.layers[layer];
    if (plain) {
      add(cat("kv_cache.scaling_factor.0.", layer), layer, 'b', scales.k);
    } else {
      add(cat("fp8kv.k_scale[", layer, "]"), layer, 'k', scales.k);
      add(cat("fp8kv.v_scale[", layer, "]"), layer, 'v', scales.v);
    }
  }
  found.diagnoses = diagnose({found.tensors, row, observation_of(provenance, row),
                              provenance.observer, row ? row->floor : 0, found.scales.format,
                              static_cast<int64_t>(found.scales.layers.size()), false});
  return found;
}

}  // namespace fp8kv
