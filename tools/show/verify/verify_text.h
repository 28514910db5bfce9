// The result of `verify` as text, as Markdown and as JUnit test cases.
#pragma once

#include <string>

#include "scales/verify/verify_scales.h"

namespace fp8kv {

// newest: the newest versions of each runtime. all: every version in the report.
enum class VerifyDetail { newest, all };

std::string verify_text(const VerifyReport& report, VerifyDetail detail);
// The outcome, the table of runtimes, the ways out, and the commands to serve the folder.
std::string verify_markdown(const std::string& path, const VerifyReport& report,
                            VerifyDetail detail);
// One test case for each requested runtime.
std::string verify_junit(const std::string& path, const VerifyReport& report);

// "SGLang 0.5.23: ignored; ...", for each requested runtime that does not get all scales.
std::vector<std::string> verify_failures(const VerifyReport& report);

}  // namespace fp8kv
