// Names of KV-cache dtypes: those of vLLM, SGLang, TGI and torch are all understood.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace fp8kv {

// Canonical names, "auto" first: what --kv-cache-dtype lists.
std::vector<std::string> kv_dtype_names();

// nullopt for "auto". Throws a usage Error for an unknown name, listing the known ones.
std::optional<DType> kv_dtype_from_name(const std::string& name);

// The canonical name: "fp8_e4m3".
std::string kv_dtype_name(DType dtype);

// Every dtype a cache can have, widest first.
std::vector<DType> kv_dtypes();

}  // namespace fp8kv
