#include "scales/read/scale_origin.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "scales/diagnose.h"

namespace fp8kv {
namespace {

// The dialect of the scales in use. Separate scales of K and V win over shared ones.
const Dialect& dialect_in_use(const std::vector<ScaleTensor>& tensors) {
  const auto apart = std::find_if(tensors.begin(), tensors.end(), [](const ScaleTensor& tensor) {
    return tensor.of != ScaleOf::both;
  });
  return *(apart == tensors.end() ? tensors[0] : *apart).dialect;
}

std::string dtypes_of(const std::vector<ScaleTensor>& tensors, const Dialect& row) {
  std::set<std::string> names;
  for (const ScaleTensor& tensor : tensors) {
    if (tensor.dialect == &row) names.insert(std::string(dtype_name(tensor.dtype)));
  }
  const std::vector<std::string> sorted(names.begin(), names.end());
  return join(sorted);
}

// Some tools copy AutoFP8's config for scales of their own. Those do not have AutoFP8's rounding.
bool is_by_another(const Dialect& row, const std::vector<ScaleTensor>& tensors) {
  std::vector<float> values;
  for (const ScaleTensor& tensor : tensors) {
    values.insert(values.end(), tensor.values.begin(), tensor.values.end());
  }
  return row.family == "autofp8" && !is_autofp8_rounding(values);
}

// The observation that inject noted beside all scales in use. It counts whatever the config says.
Observation noted_observation(const ScaleStore& store, const std::vector<ScaleTensor>& tensors,
                              const Dialect& row) {
  std::set<Observation> notes;
  for (const ScaleTensor& tensor : tensors) {
    if (tensor.dialect == &row) notes.insert(store.noted_observation(tensor.name));
  }
  return notes.size() == 1 ? *notes.begin() : Observation::unknown;
}

}  // namespace

Origin origin_of(const ScaleStore& store, const std::vector<ScaleTensor>& tensors,
                 const KvConfig& config) {
  const Dialect& row = dialect_in_use(tensors);
  Origin origin;
  origin.row = &row;
  origin.stored_dtype = dtypes_of(tensors, row);
  origin.observed = noted_observation(store, tensors, row);
  if (origin.observed != Observation::unknown) {
    origin.producer = "fp8kv";
    return origin;
  }
  if (is_by_another(row, tensors)) return origin;
  const bool tgi = config.tgi_script && row.name == "kv_scale";
  origin.observed = row.observation(config);
  origin.producer = tgi ? "TGI pull request 2028" : config.producer;
  origin.version = config.version;
  origin.observer = config.observer;
  return origin;
}

}  // namespace fp8kv
