// What becomes of each layer's scales in one runtime: the table of rules, asked layer by layer.
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
  vanishes,     // rounded to 0, to infinity or to another number, a subnormal one
  not_doubled,  // on a GPU with FNUZ, which needs them twice as large
  unused,       // the cache is not FP8
  missing,      // the layer has a cache and no scales
  unusable,     // no runtime can use such a value
  ignored,      // the cache runs with 1
  misread,      // with other scales than these
  fails,        // the runtime stops with an error
  unknown
};

const char* fate_name(Fate fate);  // "rounded away"
// Exact or rounded.
bool arrives(Fate fate);

// What is asked for beside the runtime.
struct ServingCase {
  CacheFlag flag = CacheFlag::of_scales;
  std::optional<bool> fnuz = std::nullopt;  // the GPU's E4M3; absent where no GPU is named
};

struct LayerFate {
  int64_t layer = 0;
  Fate fate = Fate::exact;
  bool doubled = false;         // for FNUZ, as it must be
  bool subnormal = false;       // arrives as such a number; `why` says which
  std::optional<double> error;  // the largest share that rounding takes, where it is known
  std::string why;              // one sentence
};

struct RuntimeFate {
  RuntimeVerdict verdict;         // of the folder as a whole
  std::vector<LayerFate> layers;  // one for each of ScalesOnDisk, in order
  bool turns_on = false;          // an FP8 cache without being asked
  bool arrives = false;           // every scale of every layer; never where there are none
};

// In `version` of that column, where it is given.
RuntimeFate runtime_fate(const ScalesOnDisk& scales, const RuntimeColumn& column,
                         const ServingCase& serving,
                         std::optional<RuntimeVersion> version = std::nullopt);

// "exact", "rounded by 0.28 % (layer 3)", where that is the most; "ignored in layers 3 and 7-9".
std::string fate_text(const RuntimeFate& fate);

}  // namespace fp8kv
