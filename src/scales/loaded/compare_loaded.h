// Compares the scales in a runtime's memory with those of the files, one by one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/scales/scales.h"
#include "scales/loaded/loaded_scales.h"

namespace fp8kv {

enum class LoadedAs {
  equal,    // bit for bit
  rounded,  // to bfloat16 or float16, with an error below 1 %
  doubled,  // exactly twice the file's scale, as for FNUZ formats
  largest,  // one scale: the largest of all heads
  one,      // 1, although the file says otherwise: it was not loaded
  missing,  // the runtime has no such scale
  differs,
};
// "equal", "rounded", ...
const char* loaded_as_name(LoadedAs how);
// Whether the runtime uses that scale, apart from rounding.
bool arrived(LoadedAs how);

struct ComparedScale {
  int64_t layer = 0;
  char of = 'K';              // or 'V' or 'Q'
  std::vector<float> file;    // one, or one per KV head
  std::vector<float> memory;  // empty if it is missing
  LoadedAs how = LoadedAs::equal;
  double error = 0;  // for a rounded scale, the largest |memory / file - 1|
};

// Two scales for each layer with a cache, in order, and a third if the files have a scale of Q. If
// several modules belong to one layer, the worst counts.
std::vector<ComparedScale> compare_loaded(const KvScales& files, const LoadedScales& loaded);

}  // namespace fp8kv
