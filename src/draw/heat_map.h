// Draws the values of a grid as colours on a logarithmic scale.
#pragma once

#include <string>
#include <vector>

namespace fp8kv {

struct HeatMap {
  std::string id;
  std::string title;
  std::string caption;
  std::string x_label;
  std::string y_label;
  std::vector<std::string> x_names;
  std::vector<std::string> y_names;
  std::vector<std::vector<double>> values;     // [y][x]; not above 0: grey, or left empty
  std::vector<std::vector<std::string>> tips;  // [y][x]
  bool empty_zeros = false;
};

std::string draw_heat_map(const HeatMap& map);

}  // namespace fp8kv
