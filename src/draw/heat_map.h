// Draws the values of a grid as colours on a logarithmic scale, and limits as lines over them.
#pragma once

#include <string>
#include <vector>

namespace fp8kv {

struct HeatLine {
  std::string name;          // "": not in the legend
  std::vector<double> rows;  // one for each column, from the top of the map; NaN: not drawn
  bool dashed = false;
};

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
  std::string of_values;  // what the colours mean: "largest |K|"
  std::string (*tick)(double) = nullptr;
  std::vector<HeatLine> lines = {};
};

std::string draw_heat_map(const HeatMap& map);

}  // namespace fp8kv
