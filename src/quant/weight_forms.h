// The forms in which checkpoints have quantised weights, as one table: by which tensors each is
// known, and how these lie.
//
//   fp8            .weight F8 [rows, columns], .weight_scale or .weight_scale_inv: AutoFP8,
//                  compressed-tensors, ModelOpt, Quark, fbgemm, DeepSeek, Qwen
//   int8           .weight I8 [rows, columns], .weight_scale: compressed-tensors
//   nvfp4          .weight or .weight_packed U8 [rows, columns / 2], .weight_scale F8_E4M3,
//                  .weight_scale_2 (ModelOpt) or .weight_global_scale (compressed-tensors)
//   mxfp4          the same with .weight_scale U8 or F8_E8M0 and nothing more
//   pack-quantized .weight_packed I32 [rows, columns / n], .weight_scale: compressed-tensors
//   gptq           .qweight I32 [columns / n, rows], .qzeros, .scales
//   awq            .qweight I32 [columns, rows / 8], .qzeros, .scales
//
// Where a scale is for: all of a matrix, a row, a group of columns, a block of both. Of all experts
// in one tensor: see expert_forms.h.
#pragma once

#include <optional>
#include <string>

#include "quant/quant_settings.h"
#include "quant/stored_weight.h"

namespace fp8kv {

// How the weight [rows, columns] of a module is stored; nullopt where it is in none of the forms.
// Throws where it is in one, and a tensor of it is missing or does not fit. `source`: "'model'",
// for messages.
std::optional<StoredWeight> find_stored_weight(const std::string& module, const Shape& shape,
                                               const QuantSettings& settings,
                                               const FindTensor& find, const std::string& source);

}  // namespace fp8kv
