// Names of KV-cache dtypes: those of vLLM, SGLang, TGI and torch are all understood.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/cache_type.h"
#include "core/model_description.h"

namespace fp8kv {

// Canonical names, "auto" first: what --kv-cache-dtype lists.
std::vector<std::string> kv_dtype_names();

// nullopt for "auto". Throws a usage Error for an unknown name, listing the known ones.
std::optional<CacheType> kv_dtype_from_name(const std::string& name);

// The canonical name: "fp8_e4m3".
std::string kv_dtype_name(const CacheType& type);

// The names that plan takes: those of kv_dtype_names, and of formats that are not computed.
std::vector<std::string> plan_dtype_names();
// The canonical one. Throws a usage Error as kv_dtype_from_name does.
std::string plan_dtype_name(const std::string& name);

// The names of vLLM's caches that make their own scales, computed here or not.
std::vector<std::string> self_scaling_dtype_names();
bool makes_own_scales(const std::string& name);

// Every type that a cache of the model can have, widest first.
std::vector<CacheType> kv_dtypes(const ModelDescription& model);

}  // namespace fp8kv
