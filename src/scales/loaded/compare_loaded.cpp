#include "scales/loaded/compare_loaded.h"

#include <algorithm>
#include <cmath>

#include "core/numbers/dtype.h"
#include "scales/scale_tensors.h"

namespace fp8kv {
namespace {

// Whether `relation` holds between file and memory for every head of the scale.
template <typename Relation>
bool all_are(const ComparedScale& scale, Relation relation) {
  return scale.file.size() == scale.memory.size() &&
         std::equal(scale.file.begin(), scale.file.end(), scale.memory.begin(), relation);
}

bool is_rounded(const ComparedScale& scale, DType dtype) {
  return all_are(scale, [&](float file, float memory) {
    return memory == rounded_to(file, dtype) && std::abs(memory / file - 1) < 0.01f;
  });
}

LoadedAs how_loaded(const ComparedScale& scale) {
  if (scale.memory.empty()) return LoadedAs::missing;
  if (all_are(scale, [](float file, float memory) { return memory == file; })) {
    return LoadedAs::equal;
  }
  if (std::all_of(scale.memory.begin(), scale.memory.end(), [](float m) { return m == 1; })) {
    return LoadedAs::one;
  }
  if (all_are(scale, [](float file, float memory) { return memory == 2 * file; })) {
    return LoadedAs::doubled;
  }
  if (scale.memory.size() == 1 && scale.file.size() > 1 &&
      scale.memory[0] == *std::max_element(scale.file.begin(), scale.file.end())) {
    return LoadedAs::largest;
  }
  const bool rounded = is_rounded(scale, DType::bf16) || is_rounded(scale, DType::f16);
  return rounded ? LoadedAs::rounded : LoadedAs::differs;
}

ComparedScale compared(int64_t layer, char of, const std::vector<float>& file,
                       const std::vector<float>& memory) {
  ComparedScale scale{layer, of, file, memory};
  scale.how = how_loaded(scale);
  if (scale.how == LoadedAs::rounded) {
    for (size_t i = 0; i < file.size(); ++i) {
      scale.error = std::max(scale.error, std::abs(double{memory[i]} / double{file[i]} - 1));
    }
  }
  return scale;
}

}  // namespace

const char* loaded_as_name(LoadedAs how) {
  switch (how) {
    case LoadedAs::equal:
      return "equal";
    case LoadedAs::rounded:
      return "rounded";
    case LoadedAs::doubled:
      return "doubled";
    case LoadedAs::largest:
      return "largest";
    case LoadedAs::one:
      return "1.0";
    case LoadedAs::missing:
      return "missing";
    case LoadedAs::differs:
      break;
  }
  return "differs";
}

bool arrived(LoadedAs how) {
  return how == LoadedAs::equal || how == LoadedAs::rounded || how == LoadedAs::doubled;
}

std::vector<ComparedScale> compare_loaded(const KvScales& files, const LoadedScales& loaded) {
  std::vector<ComparedScale> all;
  const auto add = [&](int64_t layer, char of, const std::vector<float>& file,
                       std::vector<float> LoadedAttention::*memory) {
    ComparedScale worst = compared(layer, of, file, {});
    bool first = true;
    for (const LoadedAttention& module : loaded.modules) {
      if (module.layer != layer) continue;
      ComparedScale found = compared(layer, of, file, module.*memory);
      if (first || found.how > worst.how) worst = std::move(found);
      first = false;
    }
    all.push_back(std::move(worst));
  };
  for (size_t i = 0; i < files.layers.size(); ++i) {
    const LayerScales& layer = files.layers[i];
    if (!layer.has_cache()) continue;
    add(static_cast<int64_t>(i), 'K', layer.k, &LoadedAttention::k);
    add(static_cast<int64_t>(i), 'V', layer.v, &LoadedAttention::v);
    if (!layer.q.empty()) add(static_cast<int64_t>(i), 'Q', layer.q, &LoadedAttention::q);
  }
  return all;
}

}  // namespace fp8kv
