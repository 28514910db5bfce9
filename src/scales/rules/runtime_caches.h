// A table of the cache formats that runtimes take, limited to those that fp8kv computes. One row
// covers the versions from `first` on.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "scales/rules/runtime_choice.h"

namespace fp8kv {

struct RuntimeCaches {
  const char* runtime;  // the same spelling as in a column
  RuntimeVersion first;
  std::span<const std::string_view> formats;  // canonical names: "fp8_e4m3"
  bool skips_layers;                          // --kv-cache-dtype-skip-layers
};

// The row of the requested version, or else of the newest. Returns nullptr for runtimes whose
// caches were not looked at.
const RuntimeCaches* find_runtime_caches(const ChosenRuntime& runtime);

// Returns `layers` if the runtime can leave layers in 16 bit, else none.
std::span<const int64_t> skippable(const ChosenRuntime& runtime, std::span<const int64_t> layers);

bool takes_format(const RuntimeCaches& caches, std::string_view format);

}  // namespace fp8kv
