// The description of FP8 weights in config.json, in the form of compressed-tensors. Makes text.
#pragma once

#include <span>
#include <string>

#include "quantize/schemes.h"

namespace fp8kv {

// A quantization_config as llm-compressor writes it, as JSON one level deep in a document.
// `ignore`: the modules that stay unquantised.
std::string weights_block(const Fp8Scheme& scheme, std::span<const std::string> ignore);

}  // namespace fp8kv
