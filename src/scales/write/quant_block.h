// The quantisation settings that a checkpoint's configs need for a runtime to use KV scales. Makes
// text; writes no file.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "checkpoint/quant_config.h"

namespace fp8kv {

// Return a quantization_config as JSON, for a model whose weights are not quantised. The first is a
// compressed-tensors block for the cache alone. The second is an fp8 block that leaves out every
// linear layer.
std::string compressed_tensors_block(const TensorMap& tensors, bool per_head);
std::string fp8_block(const TensorMap& tensors);
// ModelOpt's form, in which vLLM 0.33 takes scales of an NVFP4 cache beside 16-bit weights.
std::string modelopt_nvfp4_block();

// The cache that a config can ask for.
enum class CacheScheme { fp8, fp8_per_head, nvfp4 };

// Returns the configs of a quantised model that ask for such a cache in the form of its method. The
// result has the text of each file that changes, by name. Throws if the configs already ask for
// another cache. REQUIRES the method compressed_tensors, fp8 or modelopt, and modelopt for nvfp4.
std::map<std::string, std::string> with_cache_scales(const Checkpoint& checkpoint,
                                                     const QuantConfig& quant, CacheScheme scheme);

// Whether the block only serves the KV cache and has a form that fp8kv writes, so another block can
// replace it.
bool is_for_cache_alone(const QuantConfig& quant, const TensorMap& tensors);

// Indents a JSON text by one level, to be nested in another document.
std::string indented(std::string_view json);

}  // namespace fp8kv
