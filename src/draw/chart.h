// Plots values over places along x, such as layers: lines with markers, limits and error bars, on a
// linear or logarithmic axis.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace fp8kv {

enum class SeriesKind {
  line,    // markers, joined between neighbours that both have a value
  marks,   // markers alone
  limit,   // a step line without markers
  outside  // a dashed grey step line to compare with, such as limits at scale 1
};

struct Series {
  std::string name;  // "": not in the legend
  SeriesKind kind = SeriesKind::line;
  int style = 0;                  // any number; styles 48 apart look the same
  std::vector<double> values;     // one for each place; see Chart::log
  std::vector<double> errors;     // half the length of error bars, or empty
  std::vector<std::string> tips;  // one for each place, or empty
  bool neutral = false;           // black, with the shape and dashes of its style
};

struct Chart {
  std::string id;
  std::string title;
  std::string caption;
  std::string x_label;
  std::string y_label;
  std::vector<std::string> places;
  // Values that are not finite get hollow markers on the upper edge. On a log axis, values that are
  // not positive get them on the lower edge.
  bool log = false;
  std::string (*tick)(double) = nullptr;
  std::vector<Series> series;
};

std::string draw_chart(const Chart& chart);
// Draws charts below each other with one y axis, so that their heights can be compared.
// REQUIRES the same Chart::log in all.
std::string draw_charts(std::span<const Chart> charts);

// A short piece of a line in this style with its marker, for lists and tables.
std::string series_sign(int style);

// The left and right edges of layer plots, so that stacked plots line up.
inline constexpr double kPlotWidth = 800;
inline constexpr double kPlotLeft = 64;
inline constexpr double kPlotRight = 788;

// The x coordinate of the middle of place `i` of `n`.
double place_x(size_t i, size_t n);

// The labels under the places, as many as fit, and the name of the axis.
std::string place_labels(const std::vector<std::string>& places, const std::string& label,
                         double y);

}  // namespace fp8kv
