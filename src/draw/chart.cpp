#include "draw/chart.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "draw/html.h"
#include "draw/page_style.h"
#include "draw/svg.h"

namespace fp8kv {
namespace {

constexpr double kTop = 26;
constexpr double kBottom = 256;
constexpr double kHeight = 300;
constexpr double kMarkerSize = 4;

bool on_axis(double value, bool log) {
  return std::isfinite(value) && (!log || value > 0);
}

void add_shown(const Series& series, bool log, std::vector<double>& shown) {
  for (size_t i = 0; i < series.values.size(); ++i) {
    const double value = series.values[i];
    const double error = series.errors.empty() ? 0 : series.errors[i];
    for (const double each : {value, value - error, value + error}) {
      if (on_axis(each, log)) shown.push_back(each);
    }
  }
}

Axis y_axis(std::span<const Chart> charts) {
  std::vector<double> shown;
  for (const Chart& chart : charts) {
    FP8KV_ASSERT(chart.log == charts[0].log);
    for (const Series& series : chart.series) add_shown(series, chart.log, shown);
  }
  return axis_over(shown, charts[0].log, kBottom, kTop);
}

std::string grid(const Chart& chart, const Axis& axis) {
  std::string out;
  for (const double tick : axis.ticks()) {
    const double y = axis.at(tick);
    out += svg_line(kPlotLeft, y, kPlotRight, y, "grid");
    out += svg_text(kPlotLeft - 8, y + 4, "end", chart.tick(tick));
  }
  out += svg_line(kPlotLeft, kBottom, kPlotRight, kBottom, "axis");
  if (axis.low < 0 && !chart.log)
    out += svg_line(kPlotLeft, axis.at(0), kPlotRight, axis.at(0), "axis");
  return out + svg_text(0, 12, "start", chart.y_label);
}

constexpr int kShapes = 6;

// Styles use up all colours before shapes and dashes change.
int shape_of(const Series& series) {
  return (series.style % kSeriesStyles + series.style / kSeriesStyles) % kShapes;
}

std::string css_class(const Series& series) {
  if (series.kind == SeriesKind::outside) return "soft";
  return series.neutral ? "ink" : cat("s", series.style % kSeriesStyles);
}

const char* dashes(const Series& series) {
  static constexpr const char* kDashes[kShapes] = {"", "6 2", "2 2", "8 2 2 2", "4 4", "10 3"};
  if (series.kind == SeriesKind::outside) return "3 3";
  return series.kind == SeriesKind::limit ? "" : kDashes[shape_of(series)];
}

std::string path(const Series& series, const std::string& d) {
  if (d.empty()) return "";
  const std::string dash =
      *dashes(series) == 0 ? "" : cat(" stroke-dasharray=\"", dashes(series), "\"");
  return cat("<path class=\"path\"", dash, " d=\"", d, "\"/>\n");
}

std::string steps(const Series& series, const Axis& axis) {
  const size_t n = series.values.size();
  const double half = (kPlotRight - kPlotLeft) / static_cast<double>(n) / 2;
  std::string d;
  bool open = false;
  for (size_t i = 0; i < n; ++i) {
    if (!on_axis(series.values[i], axis.log)) {
      open = false;
      continue;
    }
    const double x = place_x(i, n);
    d += cat(open ? "L" : "M", svg_number(x - half), " ", svg_number(axis.at(series.values[i])),
             "H", svg_number(x + half));
    open = true;
  }
  return path(series, d);
}

std::string joined(const Series& series, const Axis& axis) {
  const size_t n = series.values.size();
  std::string d;
  bool open = false;
  for (size_t i = 0; i < n; ++i) {
    const bool shown = on_axis(series.values[i], axis.log);
    if (shown) {
      d += cat(open ? "L" : "M", svg_number(place_x(i, n)), " ",
               svg_number(axis.at(series.values[i])));
    }
    open = shown;
  }
  return path(series, d);
}

std::string markers(const Series& series, const Axis& axis) {
  const size_t n = series.values.size();
  const double size = std::clamp(200.0 / static_cast<double>(n), 2.0, kMarkerSize);
  std::string out;
  for (size_t i = 0; i < n; ++i) {
    const double value = series.values[i];
    const double x = place_x(i, n);
    const std::string tip = series.tips.empty() ? "" : series.tips[i];
    if (!on_axis(value, axis.log)) {
      const double edge = std::isfinite(value) ? axis.from : axis.to;
      out += svg_marker({x, edge, size, shape_of(series), "out", tip});
      continue;
    }
    if (!series.errors.empty() && std::isfinite(series.errors[i])) {
      const double low = value - series.errors[i];
      out += svg_line(x, on_axis(low, axis.log) ? axis.at(low) : axis.from, x,
                      axis.at(value + series.errors[i]), "err");
    }
    out += svg_marker({x, axis.at(value), size, shape_of(series), "mark", tip});
  }
  return out;
}

std::string drawn(const Series& series, const Axis& axis) {
  std::string out;
  switch (series.kind) {
    case SeriesKind::limit:
    case SeriesKind::outside:
      out = steps(series, axis);
      break;
    case SeriesKind::line:
      out = joined(series, axis) + markers(series, axis);
      break;
    case SeriesKind::marks:
      out = markers(series, axis);
      break;
  }
  return element("g", cat("class=\"", css_class(series), "\""), out) + "\n";
}

std::string sign_of(const Series& series) {
  const bool marked = series.kind == SeriesKind::line || series.kind == SeriesKind::marks;
  const std::string line = series.kind == SeriesKind::marks ? "" : path(series, "M0 7H30");
  const std::string mark =
      marked ? svg_marker({15, 7, kMarkerSize, shape_of(series), "mark", ""}) : "";
  return cat("<svg width=\"30\" height=\"14\" aria-hidden=\"true\" class=\"", css_class(series),
             "\">", line, mark, "</svg>");
}

std::string legend(const Chart& chart) {
  std::string items;
  for (const Series& series : chart.series) {
    if (series.name.empty()) continue;
    items += cat("<li>", sign_of(series), escape_html(series.name), "</li>\n");
  }
  return items;
}

std::string drawn(const Chart& chart, const Axis& axis) {
  std::string drawing = grid(chart, axis) + place_labels(chart.places, chart.x_label, kBottom);
  for (const Series& series : chart.series) {
    FP8KV_ASSERT(series.values.size() == chart.places.size());
    drawing += drawn(series, axis);
  }
  return figure(
      {chart.id, chart.title, chart.caption, legend(chart), drawing, kPlotWidth, kHeight});
}

}  // namespace

std::string series_sign(int style) {
  return sign_of({"", SeriesKind::line, style, {}, {}, {}});
}

double place_x(size_t i, size_t n) {
  return kPlotLeft +
         (static_cast<double>(i) + 0.5) * (kPlotRight - kPlotLeft) / static_cast<double>(n);
}

std::string place_labels(const std::vector<std::string>& places, const std::string& label,
                         double y) {
  const size_t n = places.size();
  size_t longest = 1;
  for (const std::string& each : places) longest = std::max(longest, each.size());
  const size_t fits = std::max<size_t>(1, 108 / (longest + 2));
  size_t every = 1;
  for (const size_t step : {1, 2, 4, 8, 16, 32, 64, 128}) {
    every = step;
    if (n / step <= fits) break;
  }
  std::string out;
  for (size_t i = 0; i < n; i += every) {
    out += svg_text(place_x(i, n), y + 16, "middle", places[i]);
  }
  return out + svg_text((kPlotLeft + kPlotRight) / 2, y + 36, "middle", label);
}

std::string draw_chart(const Chart& chart) {
  return draw_charts(std::span(&chart, 1));
}

std::string draw_charts(std::span<const Chart> charts) {
  if (charts.empty()) return "";
  const Axis axis = y_axis(charts);
  std::string out;
  for (const Chart& chart : charts) out += drawn(chart, axis);
  return out;
}

}  // namespace fp8kv
