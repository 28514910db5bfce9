// What a checkpoint's configs must say of quantisation for a runtime to use KV scales. Makes text;
// writes no file.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "checkpoint/quant_config.h"

namespace fp8kv {

// quantization_config for a model whose weights are not quantised, as JSON. The first is a block of
// compressed-tensors for the cache alone, the second one of fp8 that leaves out every linear layer.
std::string compressed_tensors_block(const TensorMap& tensors, bool per_head);
std::string fp8_block(const TensorMap& tensors);
// The form of ModelOpt in which vLLM 0.33 takes scales of an NVFP4 cache beside 16-bit weights.
std::string modelopt_nvfp4_block();

// The cache that a config asks for.
enum class CacheScheme { fp8, fp8_per_head, nvfp4 };

// The configs of a model that is quantised, with what asks for such a cache in the form of its
// method: the text of each file that changes, by name. REQUIRES the method compressed_tensors, fp8
// or modelopt, and modelopt for nvfp4. Throws when they say already that the cache is something
// else.
std::map<std::string, std::string> with_cache_scales(const Checkpoint& checkpoint,
                                                     const QuantConfig& quant, CacheScheme scheme);

// Whether the block is there for the KV cache alone and of a form that is written here, so that
// another can take its place.
bool is_for_cache_alone(const QuantConfig& quant, const TensorMap& tensors);

// A JSON text as it looks one level deeper in a document.
std::string indented(std::string_view json);

}  // namespace fp8kv
