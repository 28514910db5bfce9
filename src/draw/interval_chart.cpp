#include "draw/interval_chart.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "draw/chart.h"
#include "draw/html.h"
#include "draw/page_style.h"
#include "draw/svg.h"

namespace fp8kv {
namespace {

// Narrow enough for a phone: names stand above their intervals.
constexpr double kIntervalsWidth = 400;
constexpr double kIntervalsFrom = 22;
constexpr double kIntervalsTo = 378;
constexpr double kAboveGroups = 32;
constexpr double kGroupHeight = 28;
constexpr double kRowHeight = 36;
constexpr double kIntervalMark = 5;
// The letters that fit at 12 px, if they are wide.
constexpr size_t kLongestRowName = 26;
constexpr size_t kLongestGroupName = 38;

std::string shortened(const std::string& text, size_t most) {
  size_t letters = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
    if (begins && letters++ == most) return text.substr(0, at) + "…";
  }
  return text;
}

// The next multiple of a twentieth below or above the values.
Axis interval_axis(const IntervalChart& chart) {
  constexpr double kStep = 0.05;
  double low = INFINITY, high = -INFINITY;
  const auto cover = [&](double value) {
    if (std::isnan(value)) return;
    low = std::min(low, std::min(value, chart.most));
    high = std::max(high, std::min(value, chart.most));
  };
  for (const IntervalLine& line : chart.lines) cover(line.at);
  for (const IntervalGroup& group : chart.groups) {
    for (const IntervalRow& row : group.rows) {
      for (const double each : {row.value, row.low, row.high}) cover(each);
    }
  }
  if (low > high) low = high = 0;
  low = std::floor(low / kStep - 1e-9) * kStep;
  high = std::ceil(high / kStep + 1e-9) * kStep;
  return {false, low, high, kIntervalsFrom, kIntervalsTo};
}

std::string drawn(const IntervalRow& row, const Axis& axis, double top) {
  const double y = top + 24;
  const double end = axis.at(std::min(row.high, axis.high));
  std::string out = svg_line(axis.at(row.low), y, end, y, "path");
  out += svg_line(axis.at(row.low), y - 4, axis.at(row.low), y + 4, "path");
  if (row.high > axis.high) {
    out += cat("<path class=\"path\" d=\"M", svg_number(end - 6), " ", svg_number(y - 5), "L",
               svg_number(end), " ", svg_number(y), "L", svg_number(end - 6), " ",
               svg_number(y + 5), "\"/>\n");
  } else {
    out += svg_line(end, y - 4, end, y + 4, "path");
  }
  out += svg_marker({axis.at(std::min(row.value, axis.high)), y, kIntervalMark, 0,
                     row.mark.empty() ? "out" : "mark", row.tip});
  const std::string mark = row.mark.empty() ? "" : ", " + row.mark;
  return svg_text(0, top + 12, "start", shortened(row.name, kLongestRowName) + mark) +
         svg_text(kIntervalsWidth, top + 12, "end", row.text) +
         element("g", cat("class=\"s", row.style % kSeriesStyles, "\""), out) + "\n";
}

std::string scale(const IntervalChart& chart, const Axis& axis, double bottom) {
  std::string out;
  for (const double tick : axis.ticks()) {
    out += svg_line(axis.at(tick), kAboveGroups, axis.at(tick), bottom, "grid");
    out += svg_text(axis.at(tick), bottom + 16, "middle", chart.tick(tick));
  }
  out += svg_line(kIntervalsFrom, bottom, kIntervalsTo, bottom, "axis");
  return out + svg_text(kIntervalsWidth / 2, bottom + 36, "middle", chart.x_label);
}

// Names of dashed lines stand lower than the others, so that they do not meet.
std::string lines(const IntervalChart& chart, const Axis& axis, double bottom) {
  constexpr double kNameRoom = 80;
  std::string out;
  for (const IntervalLine& line : chart.lines) {
    const double x = axis.at(line.at);
    const char* dashes = line.dashed ? " stroke-dasharray=\"4 3\"" : "";
    out += cat("<path class=\"path\"", dashes, " d=\"M", svg_number(x), " ",
               svg_number(kAboveGroups), "L", svg_number(x), " ", svg_number(bottom), "\"/>\n");
    const char* anchor = x < kNameRoom                     ? "start"
                         : x > kIntervalsWidth - kNameRoom ? "end"
                                                           : "middle";
    out += svg_text(x, line.dashed ? 26 : 12, anchor, line.name);
  }
  return element("g", "class=\"soft\"", out) + "\n";
}

}  // namespace

std::string draw_intervals(const IntervalChart& chart) {
  double bottom = kAboveGroups;
  for (const IntervalGroup& group : chart.groups) {
    bottom += kGroupHeight + kRowHeight * static_cast<double>(group.rows.size());
  }
  bottom += 8;
  const Axis axis = interval_axis(chart);
  std::string drawing = scale(chart, axis, bottom) + lines(chart, axis, bottom);
  double y = kAboveGroups;
  for (const IntervalGroup& group : chart.groups) {
    drawing += element("g", "class=\"heading\"",
                       svg_text(0, y + 20, "start", shortened(group.name, kLongestGroupName)));
    y += kGroupHeight;
    for (const IntervalRow& row : group.rows) {
      drawing += drawn(row, axis, y);
      y += kRowHeight;
    }
  }
  return figure({.id = chart.id,
                 .title = chart.title,
                 .caption = chart.caption,
                 .legend = "",
                 .drawing = drawing,
                 .width = kIntervalsWidth,
                 .height = bottom + 44,
                 .narrow = true});
}

}  // namespace fp8kv
