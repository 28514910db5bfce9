// Names of KV-cache dtypes. The spellings of vLLM, SGLang, TGI and torch are accepted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/cache/cache_type.h"
#include "core/model/model_description.h"

namespace fp8kv {

// Canonical names, "auto" first: what --kv-cache-dtype lists.
std::vector<std::string> kv_dtype_names();

// nullopt for "auto". Throws a usage Error for an unknown name, listing the known ones.
std::optional<CacheType> kv_dtype_from_name(const std::string& name);

// The canonical name: "fp8_e4m3".
std::string kv_dtype_name(const CacheType& type);

// The names that `plan` takes: kv_dtype_names, and the packed formats that fp8kv does not compute.
std::vector<std::string> plan_dtype_names();
// The canonical form of such a name. Throws a usage Error for an unknown name, like
// kv_dtype_from_name.
std::string plan_dtype_name(const std::string& name);

// The names of vLLM's caches that make their own scales, including formats that fp8kv does not
// compute.
std::vector<std::string> self_scaling_dtype_names();
bool makes_own_scales(const std::string& name);

// Every cache type that the model supports, widest first.
std::vector<CacheType> kv_dtypes(const ModelDescription& model);

}  // namespace fp8kv
