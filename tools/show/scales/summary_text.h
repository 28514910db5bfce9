// The first three lines of every output about scales.
#pragma once

#include <filesystem>
#include <string>

#include "core/scales/scales.h"
#include "report/scales_summary.h"

namespace fp8kv {

// Three lines and an empty one: what was made, whether 1.0 would have done, and what to do next.
// REQUIRES has_evidence().
std::string summary_text(const KvScales& scales, const ServingNames& names);

// " and 1 draft layer"; "" without scales of draft layers.
std::string and_drafts(const KvScales& scales);

// The page of --report. `about` is the model folder or scale file that the page is named after.
std::string scales_page(const std::filesystem::path& about, const KvScales& scales,
                        const ServingNames& names, const std::string& date);

}  // namespace fp8kv
