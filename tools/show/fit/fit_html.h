// The HTML page of a fit.
#pragma once

#include <string>

#include "fit/fit_report.h"
#include "show/fit/fit_text.h"

namespace fp8kv {

struct FitPageHead {
  std::string date;  // "2026-11-22", or ""
  std::string tool_version;
};

// A page that loads nothing: the choice, the frontier, the layers' costs and the table.
std::string fit_html(const FitReport& report, const FitSubject& subject, const FitPageHead& head);

}  // namespace fp8kv
