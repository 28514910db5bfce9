// The families of models for which runtimes' loaders were run, and what a portable folder calls
// their scales: a table, held to tests/runtimes/observed.json.
#pragma once

#include <span>
#include <string_view>

#include "scales/rules/family.h"

namespace fp8kv {

// Beside a config of compressed-tensors.
enum class PortableNames {
  both,         // self_attn.k_scale and self_attn.attn.k_scale: what one runtime does not know the
                // other name serves
  parameters,   // self_attn.attn.k_scale alone: some loader stops at the other
  projections,  // self_attn.k_proj.k_scale: some loader stops at self_attn.k_scale, and older ones
                // do not know self_attn.attn.k_scale
};

struct ModelFamily {
  std::string_view model_type;  // as in config.json; several for some
  Family family;
  PortableNames names;
  // Q, K and V are one matrix: nothing is called k_proj. Folders for vLLM and SGLang alone get
  // `names` too, since a loader that stops at the others is one of these.
  bool one_matrix = false;
};

std::span<const ModelFamily> model_families();

// nullptr for a model type of no row.
const ModelFamily* find_family(std::string_view model_type);

// `both` for a model type of no row, as for Llama.
PortableNames portable_names(std::string_view model_type);

}  // namespace fp8kv
