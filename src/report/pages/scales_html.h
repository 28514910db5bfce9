// A page about calibrated scales, with their certificate. Loads nothing, and reads the same without
// scripts.
#pragma once

#include <string>

#include "core/scales/scales.h"
#include "report/scales_summary.h"

namespace fp8kv {

struct ScalesPage {
  std::string name;  // of the model or of the file
  ServingNames names;
  std::string date;          // the day on which the page is made, "2026-11-22"; "": not given
  std::string tool_version;  // version of the program that makes the page
};

// REQUIRES E4M3 scales whose provenance has the largest magnitudes of every layer.
std::string scales_html(const KvScales& scales, const ScalesPage& about);

}  // namespace fp8kv
