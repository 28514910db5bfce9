// The scales that a folder or a file carries, layer by layer, as runtimes meet them: under every
// name, whether they can be used or not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/dtype.h"
#include "core/scales.h"
#include "scales/rules/draft_rules.h"
#include "scales/rules/runtime_facts.h"

namespace fp8kv {

struct NamedScale {
  std::string name;           // "" in a scale file
  std::vector<float> values;  // none where they are no numbers
};

struct LayerOnDisk {
  int64_t layer = 0;
  std::vector<NamedScale> scales;  // none for a layer with a cache that has no scales
  FactSet facts;                   // of the folder, if all its layers were like this one
  std::string unusable;            // why no runtime can use one of the values; "" where all can
};

// A layer that drafts tokens, with its scales.
struct DraftOnDisk {
  DraftFacts facts;
  std::vector<NamedScale> scales;
  std::string unusable;  // as LayerOnDisk has it
};

struct ScalesOnDisk {
  FactSet facts;
  std::vector<LayerOnDisk> layers;  // those that write a cache, and any that have scales if that is
                                    // not known; rising
  std::optional<DType> dtype;       // the 16-bit one that the model is served in, where it has one
  std::vector<DraftOnDisk> drafts = {};  // those of a scale file are of no known kind
  bool layers_known = true;              // which of the model's layers write a cache

  size_t scale_count() const;
};

ScalesOnDisk scales_on_disk(const Checkpoint& checkpoint);
// Of a scale file, where readers find one number for K and V.
ScalesOnDisk scales_on_disk(const KvScales& scales);
// Of a folder that `inject` would make, with these facts.
ScalesOnDisk planned_scales(const KvScales& scales, FactSet facts, std::optional<DType> dtype);

}  // namespace fp8kv
