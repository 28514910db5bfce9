// The scales in a runtime's memory after it loaded a folder, beside those in the files. As text and
// as JSON.
#pragma once

#include <span>
#include <string>

#include "options/options.h"
#include "scales/loaded/compare_loaded.h"

namespace fp8kv {

std::string loaded_text(const LoadedScales& loaded, std::span<const ComparedScale> compared);
std::string loaded_json(const VerifyOptions& options, const LoadedScales& loaded,
                        std::span<const ComparedScale> compared);

}  // namespace fp8kv
