// A table of the forms that store all experts of a layer in one quantised tensor.
//
//   fp8    [module].weight F8 [experts, rows, columns], .weight_scale: llm-compressor's Granite 4
//          [module] F8 the same, _scale_inv: transformers' fine-grained FP8, Mistral
//          [module] F8 [experts, columns, rows], _weight_scale (ModelOpt) or _scale (fbgemm): Llama
//          4
//   nvfp4  [module] U8 [experts, columns / 2, rows], _weight_scale F8_E4M3 [experts, columns / 16,
//          rows], _weight_scale_2: ModelOpt's Llama 4 and gpt-oss
//   mxfp4  [module]_blocks U8 [experts, rows, columns / 32, 16], _scales: gpt-oss
//
// An fp8 scale covers the whole tensor, an expert, its gate or up half, a row, or a block.
// Source: llm-compressor up to 0.9 (granite4.py), vLLM (granitemoehybrid.py), transformers 5.23
// (finegrained_fp8.py, fbgemm_fp8.py, mxfp4.py), ModelOpt 0.47 (unified_export_hf.py).
#pragma once

#include <optional>
#include <string>

#include "quant/quant_settings.h"
#include "quant/stored_weight.h"

namespace fp8kv {

struct ExpertsShape {
  const Shape& whole;  // [experts, rows, columns]
  bool turned;         // the model's plain tensors are stored as [experts, columns, rows]
};

// Like find_stored_weight, for experts.
std::optional<StoredWeight> find_stored_experts(const std::string& module,
                                                const ExpertsShape& shape,
                                                const QuantSettings& settings,
                                                const FindTensor& find, const std::string& source);

}  // namespace fp8kv
