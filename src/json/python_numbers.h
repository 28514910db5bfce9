// NaN, Infinity and -Infinity in a JSON text, where Python's json module writes them for numbers.
// Internal to json.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fp8kv {

struct PythonNumber {
  size_t index = 0;  // among the numbers of the text
  double value = 0;
  std::string written;
};

// Puts a 0 and blanks where `text` has NaN, Infinity and -Infinity for numbers, so that all else
// stays where it is, and says which. Of text that is no JSON otherwise it need not find all.
std::vector<PythonNumber> take_python_numbers(std::string& text);

}  // namespace fp8kv
