// Every figure of an evaluation below its summary, as tables for the terminal: by depth and layer,
// and the certificate.
#pragma once

#include <string>

#include "eval/eval_report.h"

namespace fp8kv {

std::string eval_tables(const EvalReport& report);

}  // namespace fp8kv
