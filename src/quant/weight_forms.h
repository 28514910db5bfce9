// A table of the forms in which checkpoints store quantised weights: the tensors that identify each
// form, and their layout.
//
//   fp8            .weight F8 [rows, columns], .weight_scale or .weight_scale_inv: AutoFP8,
//                  compressed-tensors, ModelOpt, Quark, fbgemm, DeepSeek, Qwen
//   int8           .weight I8 [rows, columns], .weight_scale: compressed-tensors
//   nvfp4          .weight or .weight_packed U8 [rows, columns / 2], .weight_scale F8_E4M3,
//                  .weight_scale_2 (ModelOpt) or .weight_global_scale (compressed-tensors)
//   mxfp4          as nvfp4, with .weight_scale U8 or F8_E8M0 and nothing more; DeepSeek V4:
//                  .weight I8, and .scale F8_E8M0
//   pack-quantized .weight_packed I32 [rows, columns / n], .weight_scale: compressed-tensors
//   gptq           .qweight I32 [columns / n, rows], .qzeros, .scales
//   awq            .qweight I32 [columns, rows / 8], .qzeros, .scales
//
// A scale covers a whole matrix, a row, a group of columns, or a block of rows and columns.
// expert_forms.h has the forms with all experts in one tensor.
#pragma once

#include <optional>
#include <string>

#include "quant/quant_settings.h"
#include "quant/stored_weight.h"

namespace fp8kv {

// How the weight [rows, columns] of a module is stored; nullopt if it has none of the forms. Throws
// if it has a form but a tensor of that form is missing or does not fit. `source`: "'model'", for
// messages.
std::optional<StoredWeight> find_stored_weight(const std::string& module, const WeightShape& shape,
                                               const QuantSettings& settings,
                                               const FindTensor& find, const std::string& source);

}  // namespace fp8kv
