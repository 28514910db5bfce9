// Draws points with error bars: x linear, y logarithmic.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fp8kv {

struct ScatterPoint {
  double x = 0;
  double y = 0;
  double error = 0;  // half the length of the error bar
  std::string tip;
  bool ringed = false;  // highlighted
};

struct ScatterSeries {
  std::string name;
  std::vector<ScatterPoint> points;  // joined in this order
};

struct Scatter {
  std::string id;
  std::string title;
  std::string caption;
  std::string x_label;
  std::string y_label;
  std::vector<ScatterSeries> series;
  // Bounds, drawn as lines.
  std::optional<double> x_limit = {};
  std::optional<double> y_limit = {};
};

// Points whose y is not positive or not finite are left out.
std::string draw_scatter(const Scatter& scatter);

}  // namespace fp8kv
