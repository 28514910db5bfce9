#include "draw/scatter.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "draw/chart.h"
#include "draw/html.h"
#include "draw/numbers.h"
#include "draw/page_style.h"
#include "draw/svg.h"

namespace fp8kv {
namespace {

constexpr double kScatterTop = 26;
constexpr double kScatterBottom = 256;
constexpr double kScatterHeight = 300;
constexpr double kPointSize = 5;
constexpr double kRing = 10;

bool is_shown(const ScatterPoint& point) {
  return std::isfinite(point.x) && std::isfinite(point.y) && point.y > 0;
}

struct Axes {
  Axis x, y;
};

Axes axes_of(const Scatter& scatter) {
  std::vector<double> xs, ys;
  if (scatter.x_limit) xs.push_back(*scatter.x_limit);
  if (scatter.y_limit) ys.push_back(*scatter.y_limit);
  for (const ScatterSeries& series : scatter.series) {
    for (const ScatterPoint& each : series.points) {
      if (!is_shown(each)) continue;
      xs.push_back(each.x);
      ys.insert(ys.end(), {each.y, each.y + each.error});
      if (each.y > each.error) ys.push_back(each.y - each.error);
    }
  }
  return {axis_over(xs, false, kPlotLeft, kPlotRight),
          axis_over(ys, true, kScatterBottom, kScatterTop)};
}

std::string grid(const Scatter& scatter, const Axes& axes) {
  std::string out;
  for (const double tick : axes.y.ticks()) {
    const double y = axes.y.at(tick);
    out += svg_line(kPlotLeft, y, kPlotRight, y, "grid");
    out += svg_text(kPlotLeft - 8, y + 4, "end", short_number(tick));
  }
  for (const double tick : axes.x.ticks()) {
    const double x = axes.x.at(tick);
    out += svg_line(x, kScatterTop, x, kScatterBottom, "grid");
    out += svg_text(x, kScatterBottom + 16, "middle", short_number(tick, 6));
  }
  out += svg_line(kPlotLeft, kScatterBottom, kPlotRight, kScatterBottom, "axis");
  out += svg_text((kPlotLeft + kPlotRight) / 2, kScatterBottom + 36, "middle", scatter.x_label);
  return out + svg_text(0, 12, "start", scatter.y_label);
}

std::string limits(const Scatter& scatter, const Axes& axes) {
  std::string d;
  if (scatter.y_limit) {
    d += cat("M", svg_number(kPlotLeft), " ", svg_number(axes.y.at(*scatter.y_limit)), "H",
             svg_number(kPlotRight));
  }
  if (scatter.x_limit) {
    d += cat("M", svg_number(axes.x.at(*scatter.x_limit)), " ", svg_number(kScatterTop), "V",
             svg_number(kScatterBottom));
  }
  if (d.empty()) return "";
  return element("g", "class=\"soft\"",
                 cat("<path class=\"path\" stroke-dasharray=\"3 3\" d=\"", d, "\"/>"));
}

std::string drawn(const ScatterSeries& series, size_t style, const Axes& axes) {
  std::string d, marks;
  for (const ScatterPoint& each : series.points) {
    if (!is_shown(each)) continue;
    const double x = axes.x.at(each.x), y = axes.y.at(each.y);
    d += cat(d.empty() ? "M" : "L", svg_number(x), " ", svg_number(y));
    if (each.error > 0) {
      const double low = each.y > each.error ? axes.y.at(each.y - each.error) : kScatterBottom;
      marks += svg_line(x, low, x, axes.y.at(each.y + each.error), "err");
    }
    if (each.ringed) {
      marks += cat("<circle class=\"path\" cx=\"", svg_number(x), "\" cy=\"", svg_number(y),
                   "\" r=\"", svg_number(kRing), "\"/>\n");
    }
    marks += svg_marker({x, y, kPointSize, static_cast<int>(style), "mark", each.tip});
  }
  const std::string line = d.empty() ? "" : cat("<path class=\"path\" d=\"", d, "\"/>\n");
  return element("g", cat("class=\"s", style % kSeriesStyles, "\""), line + marks) + "\n";
}

}  // namespace

std::string draw_scatter(const Scatter& scatter) {
  const Axes axes = axes_of(scatter);
  std::string drawing = grid(scatter, axes) + limits(scatter, axes);
  std::string legend;
  for (size_t i = 0; i < scatter.series.size(); ++i) {
    const ScatterSeries& series = scatter.series[i];
    drawing += drawn(series, i, axes);
    legend += cat("<li>", series_sign(static_cast<int>(i)), escape_html(series.name), "</li>\n");
  }
  return figure(
      {scatter.id, scatter.title, scatter.caption, legend, drawing, kPlotWidth, kScatterHeight});
}

}  // namespace fp8kv
