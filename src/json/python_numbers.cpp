#include "json/python_numbers.h"

#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

namespace fp8kv {

std::vector<PythonNumber> take_python_numbers(std::string& text) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::pair<std::string_view, double> words[] = {
      {"-Infinity", -kInfinity}, {"Infinity", kInfinity}, {"NaN", std::nan("")}};
  std::vector<PythonNumber> taken;
  size_t numbers = 0;
  bool in_string = false;
  char before = ',';  // the last character that is not blank
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      in_string = c != '"';
      continue;
    }
    if (std::string_view(" \t\r\n").find(c) != std::string_view::npos) continue;
    const bool begins = before == ',' || before == ':' || before == '[';
    in_string = c == '"';
    before = c;
    if (!begins || (c != '-' && c != 'I' && c != 'N' && !(c >= '0' && c <= '9'))) continue;
    for (const auto& [word, value] : words) {
      if (text.compare(at, word.size(), word) != 0) continue;
      taken.push_back({numbers, value, std::string(word)});
      text.replace(at, word.size(), "0" + std::string(word.size() - 1, ' '));
      at += word.size() - 1;
      break;
    }
    ++numbers;
  }
  return taken;
}

}  // namespace fp8kv
