#include "draw/heat_map.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "draw/chart.h"
#include "draw/html.h"
#include "draw/numbers.h"
#include "draw/svg.h"

namespace fp8kv {
namespace {

// Nine colours from dark blue to yellow, in equal steps of rising lightness. The order is visible
// with every kind of colour vision, and in grey.
constexpr std::array<const char*, 9> kColours = {"#00224e", "#1c3a6b", "#434e6c",
                                                 "#5f636e", "#7d7c78", "#9a9576",
                                                 "#b9ae6c", "#d9c95a", "#fde737"};
constexpr double kAboveRows = 26;

// The logarithmic scale over the positive values.
struct Steps {
  double low = 1;
  double high = 1;

  size_t of(double value) const {
    if (high <= low) return kColours.size() / 2;
    const double share = std::log(value / low) / std::log(high / low);
    const auto step = static_cast<size_t>(share * static_cast<double>(kColours.size()));
    return std::min(step, kColours.size() - 1);
  }
  // The value at which step `i` begins.
  double floor(size_t i) const {
    return low * std::pow(high / low, static_cast<double>(i) / double{kColours.size()});
  }
};

bool is_shown(double value) {
  return std::isfinite(value) && value > 0;
}

Steps steps_over(const HeatMap& map) {
  Steps steps{INFINITY, 0};
  for (const auto& row : map.values) {
    for (const double value : row) {
      if (!is_shown(value)) continue;
      steps.low = std::min(steps.low, value);
      steps.high = std::max(steps.high, value);
    }
  }
  return steps.high == 0 ? Steps{} : steps;
}

const char* dashes(const HeatLine& line) {
  return line.dashed ? " stroke-dasharray=\"4 3\"" : "";
}

// A step line, drawn twice: a wide one in the page's colour keeps the other visible on every cell.
std::string drawn(const HeatLine& line, double width, double height) {
  std::string d;
  bool open = false;
  for (size_t x = 0; x < line.rows.size(); ++x) {
    if (!std::isfinite(line.rows[x])) {
      open = false;
      continue;
    }
    const double left = kPlotLeft + width * static_cast<double>(x);
    d += cat(open ? "L" : "M", svg_number(left), " ",
             svg_number(kAboveRows + height * line.rows[x]), "H", svg_number(left + width));
    open = true;
  }
  if (d.empty()) return "";
  return cat("<path class=\"halo\" d=\"", d, "\"/>\n<g class=\"ink\"><path class=\"path\"",
             dashes(line), " d=\"", d, "\"/></g>\n");
}

std::string legend(const HeatMap& map, const Steps& steps) {
  const size_t shown = steps.high <= steps.low ? 1 : kColours.size();
  std::string items;
  for (const HeatLine& line : map.lines) {
    if (line.name.empty()) continue;
    items += cat("<li><svg width=\"30\" height=\"14\" aria-hidden=\"true\" class=\"ink\">",
                 "<path class=\"path\"", dashes(line), " d=\"M0 7H30\"/></svg>",
                 escape_html(line.name), "</li>\n");
  }
  items += cat("<li>", escape_html(map.of_values), ":</li>\n");
  for (size_t i = 0; i < shown; ++i) {
    const size_t colour = shown == 1 ? steps.of(steps.low) : i;
    items += cat(
        "<li><svg width=\"14\" height=\"14\" aria-hidden=\"true\"><rect width=\"14\" "
        "height=\"14\" fill=\"",
        kColours[colour], "\"/></svg>", i == 0 ? "" : "≥ ", map.tick(steps.floor(i)), "</li>\n");
  }
  return items;
}

std::string cell(double x, double y, double width, double height, const std::string& fill,
                 const std::string& tip) {
  return cat("<rect class=\"cell\" x=\"", svg_number(x), "\" y=\"", svg_number(y), "\" width=\"",
             svg_number(width), "\" height=\"", svg_number(height), "\" fill=\"", fill, "\">",
             svg_title(tip), "</rect>\n");
}

}  // namespace

std::string draw_heat_map(const HeatMap& map) {
  const Steps steps = steps_over(map);
  const size_t rows = map.y_names.size();
  const size_t columns = map.x_names.size();
  const double height = std::clamp(160.0 / static_cast<double>(rows), 8.0, 24.0);
  const double width = (kPlotRight - kPlotLeft) / static_cast<double>(columns);
  const double bottom = kAboveRows + height * static_cast<double>(rows);
  std::string drawing = svg_text(0, 12, "start", map.y_label);
  const char* none = map.empty_zeros ? "none" : "#808080";
  const size_t every = height < 14 ? 2 : 1;
  for (size_t y = 0; y < rows; ++y) {
    const double top = kAboveRows + height * static_cast<double>(y);
    if (y % every == 0) {
      drawing += svg_text(kPlotLeft - 8, top + height / 2 + 4, "end", map.y_names[y]);
    }
    for (size_t x = 0; x < columns; ++x) {
      const double value = map.values[y][x];
      drawing += cell(kPlotLeft + width * static_cast<double>(x), top, width, height,
                      is_shown(value) ? kColours[steps.of(value)] : none, map.tips[y][x]);
    }
  }
  for (const HeatLine& line : map.lines) drawing += drawn(line, width, height);
  drawing += place_labels(map.x_names, map.x_label, bottom);
  return figure(
      {map.id, map.title, map.caption, legend(map, steps), drawing, kPlotWidth, bottom + 44});
}

}  // namespace fp8kv
