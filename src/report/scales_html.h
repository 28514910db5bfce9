// Scales that calibration made as a page to look at, with the certificate on them. Loads nothing
// from elsewhere and says the same without scripts.
#pragma once

#include <string>

#include "core/scales.h"
#include "report/scales_summary.h"

namespace fp8kv {

struct ScalesPage {
  std::string name;  // of the model, or of the file
  ServingNames names;
  std::string date;          // "2026-11-22", of the day on which the page is made; "": not told
  std::string tool_version;  // of the program that makes it
};

// REQUIRES the largest magnitudes of every layer in the provenance of the scales, which are E4M3.
std::string scales_html(const KvScales& scales, const ScalesPage& about);

}  // namespace fp8kv
