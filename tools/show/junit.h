// A JUnit document, for continuous integration.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace fp8kv {

struct JunitCase {
  std::string classname;
  std::string name;
  std::optional<std::string> failure;  // the message; nullopt if it passed
};

// A document with one suite.
std::string junit_text(const std::string& suite, std::span<const JunitCase> cases);

}  // namespace fp8kv
