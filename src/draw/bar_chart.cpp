#include "draw/bar_chart.h"

#include <algorithm>

#include "base/text.h"
#include "draw/chart.h"
#include "draw/html.h"
#include "draw/svg.h"

namespace fp8kv {
namespace {

constexpr double kPitch = 34;
constexpr double kFirst = 120;  // left end of the bars
constexpr double kLast = 520;   // right end of the longest bar, with room for its text

}  // namespace

std::string draw_bars(const BarChart& chart) {
  double most = 0;
  for (const Bar& bar : chart.bars) most = std::max(most, bar.value);
  std::string drawing;
  double y = 4;
  for (const Bar& bar : chart.bars) {
    const double width = most > 0 ? bar.value / most * (kLast - kFirst) : 0;
    drawing += svg_text(kFirst - 10, y + 18, "end", bar.name);
    drawing += cat("<g class=\"soft\"><rect class=\"bar\" x=\"", svg_number(kFirst), "\" y=\"",
                   svg_number(y + 2), "\" width=\"", svg_number(width), "\" height=\"24\">",
                   svg_title(bar.tip), "</rect></g>\n");
    drawing += svg_text(kFirst + width + 10, y + 18, "start", bar.text);
    y += kPitch;
  }
  drawing += svg_line(kFirst, 0, kFirst, y, "axis");
  return figure({chart.id, chart.title, chart.caption, "", drawing, kPlotWidth, y + 4});
}

}  // namespace fp8kv
