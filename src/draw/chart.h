// Values over a few or many places along x, such as layers: lines with markers, limits and error
// bars over a linear or logarithmic axis.
#pragma once

#include <string>
#include <vector>

namespace fp8kv {

enum class SeriesKind {
  line,    // markers, joined where neighbours are there
  marks,   // markers alone
  limit,   // a step line without markers
  outside  // a dashed grey step line: what holds somewhere else
};

struct Series {
  std::string name;  // "": not in the legend
  SeriesKind kind = SeriesKind::line;
  int style = 0;                  // any; those apart by 48 look the same
  std::vector<double> values;     // one for each place; see Chart::log
  std::vector<double> errors;     // half the length of error bars, or empty
  std::vector<std::string> tips;  // one for each place, or empty
  bool neutral = false;           // black, with the shape and the dashes of its style
};

struct Chart {
  std::string id;
  std::string title;
  std::string caption;
  std::string x_label;
  std::string y_label;
  std::vector<std::string> places;
  // Hollow markers stand on the upper edge for values that are not finite, on the lower edge of a
  // log axis for those that are not positive.
  bool log = false;
  std::string (*tick)(double) = nullptr;
  std::vector<Series> series;
};

std::string draw_chart(const Chart& chart);

// A piece of a line of this style with its marker, for lists and tables.
std::string series_sign(int style);

// Where the plots of layers begin and end, so that those below one another line up.
inline constexpr double kPlotWidth = 800;
inline constexpr double kPlotLeft = 64;
inline constexpr double kPlotRight = 788;

// Middle of place `i` of `n`.
double place_x(size_t i, size_t n);

// Labels under the places, as many as fit, and the name of the axis.
std::string place_labels(const std::vector<std::string>& places, const std::string& label,
                         double y);

}  // namespace fp8kv
