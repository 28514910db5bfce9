// A table of the model families whose loaders were run, with the scale names of a portable folder.
// tests/runtimes/observed.json checks it.
#pragma once

#include <span>
#include <string_view>

#include "scales/rules/tables/family.h"

namespace fp8kv {

// The scale names to write beside a config of compressed-tensors.
enum class PortableNames {
  both,  // self_attn.k_scale and self_attn.attn.k_scale: a runtime that does not know one reads the
         // other
  apart,        // self_attn.k_scale alone: some loader stops at every other name
  parameters,   // self_attn.attn.k_scale alone: some loader stops at the other
  projections,  // self_attn.k_proj.k_scale: some loader stops at self_attn.k_scale, older ones
                // ignore self_attn.attn.k_scale
};

struct ModelFamily {
  std::string_view model_type;  // as in config.json; some families have several rows
  Family family;
  PortableNames names;
  // Q, K and V share one matrix, so there is no k_proj. Folders for vLLM or SGLang alone use
  // `names` too, since a loader that stops at other names is one of theirs.
  bool one_matrix = false;
};

std::span<const ModelFamily> model_families();

// Returns nullptr for a model type without a row.
const ModelFamily* find_family(std::string_view model_type);

// Returns `both` for a model type without a row, as for Llama.
PortableNames portable_names(std::string_view model_type);

}  // namespace fp8kv
