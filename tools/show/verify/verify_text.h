// What `verify` found, for people and as test cases.
#pragma once

#include <string>

#include "scales/verify/verify_scales.h"

namespace fp8kv {

// newest: the newest versions of each runtime. all: every one in the report.
enum class VerifyDetail { newest, all };

std::string verify_text(const VerifyReport& report, VerifyDetail detail);
// One case for each runtime that was asked for.
std::string verify_junit(const std::string& path, const VerifyReport& report);

// "SGLang 0.5.23: ignored; ...", for each that was asked for and does not get all scales.
std::vector<std::string> verify_failures(const VerifyReport& report);

}  // namespace fp8kv
