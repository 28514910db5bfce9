#include "support/skip.h"

#include <cstdio>
#include <vector>

namespace fp8kv::test {
namespace {

std::vector<std::string>& reasons() {
  static std::vector<std::string> all;
  return all;
}

}  // namespace

void skip(const std::string& reason) {
  reasons().push_back(reason);
}

void print_skipped(bool failed) {
  // ctest takes a test for skipped by this mark, whatever its exit code is.
  const char* const mark = failed ? "not all could run: " : "[skipped] ";
  for (const std::string& reason : reasons()) std::printf("%s%s\n", mark, reason.c_str());
}

}  // namespace fp8kv::test
