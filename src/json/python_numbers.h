// Handles NaN, Infinity and -Infinity in JSON text, which Python's json module writes as numbers.
// Internal to json.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fp8kv {

struct PythonNumber {
  size_t index = 0;  // among all numbers of the text
  double value = 0;
  std::string written;
};

// Replaces NaN, Infinity and -Infinity in number positions by a 0 and blanks, so that everything
// else stays in place. Returns what was replaced. If the text is not JSON anyway, some may be
// missed.
std::vector<PythonNumber> take_python_numbers(std::string& text);

}  // namespace fp8kv
