#include "kernels/ptx/machine/kernel_name.h"

#include <cstdlib>
#include <cxxabi.h>
#include <memory>
#include <regex>

namespace fp8kv::ptx {

std::string readable_name(const std::string& mangled) {
  struct Free {
    void operator()(char* text) const { std::free(text); }
  };
  int status = 0;
  const std::unique_ptr<char, Free> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status));
  if (status != 0 || !text) return mangled;
  // nvcc replaces an anonymous namespace by a name of its own. The regex is not static: names are
  // written when the program ends, after statics are gone.
  const std::regex rooms(
      "fp8kv::|[a-z_0-9]+::|\\(anonymous namespace\\)::|_GLOBAL__N__\\w*::|^void ");
  const std::string name = std::regex_replace(std::string(text.get()), rooms, "");
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    // Parentheses inside of template arguments are casts.
    if (name[i] == '(' && depth == 0) return name.substr(0, i);
  }
  return name;
}

}  // namespace fp8kv::ptx
