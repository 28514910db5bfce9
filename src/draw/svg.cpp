#include "draw/svg.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "draw/html.h"

namespace fp8kv {
namespace {

std::string points(const std::vector<std::pair<double, double>>& corners) {
  std::string text;
  for (const auto& [x, y] : corners) {
    text += cat(text.empty() ? "" : " ", svg_number(x), ",", svg_number(y));
  }
  return text;
}

// The corners of shapes with about the same area. A circle of radius r has none.
std::vector<std::pair<double, double>> marker_corners(double x, double y, double r, int shape) {
  const double small = 0.875 * r, large = 1.125 * r, wide = 1.25 * r, half = 0.5 * r;
  switch (shape) {
    case 1:
      return {{x - small, y - small},
              {x + small, y - small},
              {x + small, y + small},
              {x - small, y + small}};
    case 2:
      return {{x, y - wide}, {x + wide, y}, {x, y + wide}, {x - wide, y}};
    case 3:
      return {{x, y - large}, {x + large, y + r}, {x - large, y + r}};
    case 4:
      return {{x, y + large}, {x + large, y - r}, {x - large, y - r}};
    default:
      return {{x - half, y - r}, {x + half, y - r}, {x + half, y + r}, {x - half, y + r}};
  }
}

// Room beyond the outermost values on a logarithmic axis, as a factor.
constexpr double kLogRoom = 1.05;

double decade_of(double value) {
  return std::pow(10, std::floor(std::log10(value)));
}

// Rounds to 1, 2 or 5 times a power of ten: the nearest one not above the value, or not below it.
double round_down(double value) {
  const double decade = decade_of(value);
  return decade * (value >= 5 * decade ? 5 : value >= 2 * decade ? 2 : 1);
}

double round_up(double value) {
  const double decade = decade_of(value);
  return decade * (value <= decade ? 1 : value <= 2 * decade ? 2 : value <= 5 * decade ? 5 : 10);
}

double nice_step(double range) {
  const double rough = range / 5;
  const double decade = decade_of(rough);
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * decade >= rough) return factor * decade;
  }
  return 10 * decade;
}

}  // namespace

std::string svg_number(double value) {
  std::string text = fixed(value, 2);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string svg_line(double x1, double y1, double x2, double y2, std::string_view css_class) {
  return cat("<line class=\"", css_class, "\" x1=\"", svg_number(x1), "\" y1=\"", svg_number(y1),
             "\" x2=\"", svg_number(x2), "\" y2=\"", svg_number(y2), "\"/>\n");
}

std::string svg_text(double x, double y, std::string_view anchor, std::string_view text) {
  return cat("<text x=\"", svg_number(x), "\" y=\"", svg_number(y), "\" text-anchor=\"", anchor,
             "\">", escape_html(text), "</text>\n");
}

std::string svg_title(std::string_view tip) {
  return tip.empty() ? "" : element("title", "", escape_html(tip));
}

std::string svg_marker(const Marker& marker) {
  const auto& [x, y, size, shape, css_class, tip] = marker;
  const std::string title = svg_title(tip);
  if (shape == 0) {
    return cat("<circle class=\"", css_class, "\" cx=\"", svg_number(x), "\" cy=\"", svg_number(y),
               "\" r=\"", svg_number(size), "\">", title, "</circle>\n");
  }
  return cat("<polygon class=\"", css_class, "\" points=\"",
             points(marker_corners(x, y, size, shape)), "\">", title, "</polygon>\n");
}

std::string figure(const Figure& parts) {
  const std::string legend =
      parts.legend.empty() ? "" : cat("<ul class=\"legend\">", parts.legend, "</ul>\n");
  return cat("<figure>\n", legend, parts.narrow ? "" : scroll_hint(),
             "\n<div class=\"scroll\"><svg class=\"plot", parts.narrow ? " narrow" : "",
             "\" viewBox=\"0 0 ", svg_number(parts.width), " ", svg_number(parts.height),
             "\" role=\"img\" aria-labelledby=\"", parts.id, "\">\n<title id=\"", parts.id, "\">",
             escape_html(parts.title), "</title>\n", parts.drawing, "</svg></div>\n",
             element("figcaption", "", escape_html(parts.caption)), "\n</figure>\n");
}

double Axis::at(double value) const {
  const double share =
      log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  return from + std::clamp(share, 0.0, 1.0) * (to - from);
}

std::vector<double> Axis::ticks() const {
  std::vector<double> found;
  if (!log) {
    const double step = nice_step(high - low);
    const auto first = static_cast<int64_t>(std::ceil(low / step - 1e-9));
    const auto last = static_cast<int64_t>(std::floor(high / step + 1e-9));
    for (int64_t i = first; i <= last; ++i) found.push_back(static_cast<double>(i) * step);
    return found;
  }
  const double decades = std::log10(high / low);
  const int first = static_cast<int>(std::floor(std::log10(low)));
  const int last = static_cast<int>(std::floor(std::log10(high)));
  const int every = std::max(1, static_cast<int>(std::ceil(decades / 8)));
  for (int i = first; i <= last; i += every) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && decades > 2.5) continue;
      const double value = factor * std::pow(10, i);
      if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) found.push_back(value);
    }
  }
  return found;
}

Axis axis_over(const std::vector<double>& values, bool log, double from, double to) {
  Axis axis{log, log ? 1.0 : 0.0, log ? 10.0 : 1.0, from, to};
  if (values.empty()) return axis;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (log) {
    axis.low = round_down(*least / kLogRoom);
    axis.high = round_up(*most * kLogRoom);
    return axis;
  }
  axis.low = std::min(*least, 0.0);
  axis.high = std::max(*most, 0.0);
  const double margin = 0.06 * (axis.high - axis.low);
  if (axis.low < 0) axis.low -= margin;
  axis.high += margin;
  if (axis.high <= axis.low) axis.high = axis.low + 1;
  return axis;
}

}  // namespace fp8kv
