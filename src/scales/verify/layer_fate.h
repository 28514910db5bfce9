// The fate of each layer's scales in one runtime: applies the table of rules layer by layer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scales/rules/runtime_rules.h"
#include "scales/rules/serving.h"
#include "scales/verify/folder_scales.h"

namespace fp8kv {

enum class Fate {
  exact,        // in memory with the bits of the file
  rounded,      // to the model's dtype
  vanishes,     // rounded to 0, to infinity or to a different subnormal number
  not_doubled,  // the GPU uses FNUZ and needs them twice as large
  unused,       // the cache is not FP8
  missing,      // the layer has a cache but no scales
  not_needed,   // the layer will be served in 16 bit, and the runtime can do that
  unusable,     // no runtime can use such a value
  ignored,      // the cache runs with a scale of 1
  misread,      // the cache runs with other scales than these
  fails,        // the runtime stops with an error
  unknown
};

const char* fate_name(Fate fate);  // "rounded away"
// Whether the fate is exact or rounded, or no scale is needed.
bool arrives(Fate fate);

// The request beside the runtime: the cache, and the GPU's FP8 format.
struct ServingCase {
  CacheFlag flag = CacheFlag::of_scales;
  std::optional<bool> fnuz = std::nullopt;  // the GPU's E4M3 is FNUZ; absent: no GPU named
};

struct LayerFate {
  int64_t layer = 0;
  Fate fate = Fate::exact;
  bool doubled = false;         // the runtime doubles the scales for FNUZ, as it must
  bool subnormal = false;       // arrives as a subnormal number; `why` says which
  std::optional<double> error;  // the largest relative rounding error, if known
  std::string why;              // one sentence
};

struct RuntimeFate {
  RuntimeVerdict verdict;         // the verdict for the folder as a whole
  std::vector<LayerFate> layers;  // one for each of ScalesOnDisk, in order
  bool turns_on = false;          // uses an FP8 cache without being asked
  bool arrives = false;           // every scale of every layer; false if there are none
};

// The fate of all layers in the column's newest version, or in `version` if given.
RuntimeFate runtime_fate(const ScalesOnDisk& scales, const RuntimeColumn& column,
                         const ServingCase& serving,
                         std::optional<RuntimeVersion> version = std::nullopt);

// "exact", "rounded by 0.28 % (layer 3)" for the largest error, "ignored in layers 3 and 7-9".
std::string fate_text(const RuntimeFate& fate);

}  // namespace fp8kv
