#include "scales/read/q_scales.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "scales/scale_names.h"

namespace fp8kv {

std::vector<ScaleTensor> q_tensors(const ScaleStore& store) {
  std::vector<ScaleTensor> tensors;
  if (store.carrier() != Carrier::model_folder) return tensors;
  const std::vector<std::string> drafts = store.draft_layers();
  for (const StoredTensor& stored : store.tensors()) {
    const bool in_draft = std::any_of(drafts.begin(), drafts.end(), [&](const std::string& draft) {
      return stored.name.starts_with(draft + ".");
    });
    if (in_draft || scale_spelling(stored.name) != ScaleSpelling::query) continue;
    const auto parts = store.split(stored.name);
    tensors.push_back({stored.name,
                       parts ? parts->layer : 0,
                       ScaleOf::q,
                       stored.dtype,
                       stored.shape,
                       {},
                       nullptr,
                       ""});
  }
  return tensors;
}

QScales q_scales(const std::vector<ScaleTensor>& tensors, const StoredModel& model) {
  QScales found;
  std::map<int64_t, const ScaleTensor*> first;
  for (const ScaleTensor& tensor : tensors) {
    if (tensor.values.size() != 1) return {{}, "scales of Q by head, which no runtime takes"};
    const double value = tensor.values[0];
    if (!(value >= kLeastScale && value <= kLargestScale)) {
      return {{}, "scales of Q that nobody set", diagnose_q(tensor.name, tensor.values[0])};
    }
    const auto [known, added] = first.emplace(tensor.layer, &tensor);
    if (added || known->second->values == tensor.values) continue;
    throw Error(
        cat(quote(known->second->name), " is ", known->second->values[0], ", ", quote(tensor.name),
            " is ", tensor.values[0], ": expected the same, as both are one scale"),
        "runtimes differ in which of the two they read: inject the right scales into the "
        "original model again");
  }
  if (first.empty()) return found;
  for (size_t layer = 0; layer < model.has_cache.size(); ++layer) {
    const auto own = first.find(static_cast<int64_t>(layer));
    if (model.has_cache[layer] && own == first.end()) {
      return {{}, "scales of Q, which other layers do not have"};
    }
    found.by_layer.push_back(model.has_cache[layer] ? own->second->values[0] : 0);
  }
  return found;
}

}  // namespace fp8kv
