// The three lines that come first where scales are shown.
#pragma once

#include <filesystem>
#include <string>

#include "core/scales.h"
#include "report/scales_summary.h"

namespace fp8kv {

// What was made, whether 1.0 would have done, and what to do next, each on a line; then an empty
// one. REQUIRES has_evidence().
std::string summary_text(const KvScales& scales, const ServingNames& names);

// " and 1 draft layer"; "" for scales of the model's layers alone.
std::string and_drafts(const KvScales& scales);

// The page of --report. `about` is the model's folder or the file of the scales, which names it.
std::string scales_page(const std::filesystem::path& about, const KvScales& scales,
                        const ServingNames& names, const std::string& date);

}  // namespace fp8kv
