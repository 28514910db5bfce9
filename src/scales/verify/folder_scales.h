// The scales of a folder or file, layer by layer, as runtimes meet them: under every name, usable
// or not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/numbers/dtype.h"
#include "core/scales/scales.h"
#include "scales/rules/draft_rules.h"
#include "scales/rules/runtime_facts.h"

namespace fp8kv {

struct NamedScale {
  std::string name;           // "" in a scale file
  std::vector<float> values;  // empty if they are not numbers
};

struct LayerOnDisk {
  int64_t layer = 0;
  std::vector<NamedScale> scales;  // empty if a layer with a cache has no scales
  FactSet facts;                   // the folder's facts if all layers were like this one
  std::string unusable;            // why no runtime can use one of the values; "" if all are usable
};

// A layer that drafts tokens, with its scales.
struct DraftOnDisk {
  DraftFacts facts;
  std::vector<NamedScale> scales;
  std::string unusable;  // as in LayerOnDisk
};

struct ScalesOnDisk {
  FactSet facts;
  // Layers that write a cache, or that have scales if this is unknown; ascending.
  std::vector<LayerOnDisk> layers;
  std::optional<DType> dtype;  // the 16-bit dtype that the model is served in, if it has one
  std::vector<DraftOnDisk> drafts = {};  // drafts of a scale file have no known kind
  bool layers_known = true;              // whether it is known which layers write a cache
  std::vector<int64_t> skipped = {};     // layers that will be served in 16 bit; ascending

  size_t scale_count() const;
};

ScalesOnDisk scales_on_disk(const Checkpoint& checkpoint);
// The scales of a scale file. Its readers find one number for K and V.
ScalesOnDisk scales_on_disk(const KvScales& scales);
// The scales of a folder that `inject` would make. `facts` are those of that folder.
ScalesOnDisk planned_scales(const KvScales& scales, FactSet facts, std::optional<DType> dtype);

}  // namespace fp8kv
