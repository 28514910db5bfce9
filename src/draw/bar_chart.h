// Horizontal bars from zero, each with its name in front and its value behind.
#pragma once

#include <string>
#include <vector>

namespace fp8kv {

struct Bar {
  std::string name;
  double value = 0;
  std::string text;  // the value in words
  std::string tip;
};

struct BarChart {
  std::string id;
  std::string title;
  std::string caption;
  std::vector<Bar> bars;
};

std::string draw_bars(const BarChart& chart);

}  // namespace fp8kv
