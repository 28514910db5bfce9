// Scales in a runtime's memory beside those of the files, one by one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/scales.h"
#include "scales/loaded/loaded_scales.h"

namespace fp8kv {

enum class LoadedAs {
  equal,    // bit for bit
  rounded,  // to bfloat16 or float16, by less than 1 %
  doubled,  // exactly, as for the FNUZ formats
  largest,  // one scale, the largest of its heads'
  one,      // 1, which no file says: it was not loaded
  missing,  // the runtime has no such scale
  differs,
};
// "equal", "rounded", ...
const char* loaded_as_name(LoadedAs how);
// Whether the runtime works with that scale, but for its rounding.
bool arrived(LoadedAs how);

struct ComparedScale {
  int64_t layer = 0;
  char of = 'K';              // or 'V' or 'Q'
  std::vector<float> file;    // one, or one per KV head
  std::vector<float> memory;  // none where it is missing
  LoadedAs how = LoadedAs::equal;
  double error = 0;  // where it was rounded, the largest of |memory / file - 1|
};

// Two for each layer with a cache, in order, and a third where the files have a scale of Q. Of
// several modules of a layer, the worst counts.
std::vector<ComparedScale> compare_loaded(const KvScales& files, const LoadedScales& loaded);

}  // namespace fp8kv
