// Draws in SVG: numbers, a few elements, and axes. The page's CSS classes set the colours.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fp8kv {

// A coordinate, rounded to a hundredth.
std::string svg_number(double value);

std::string svg_line(double x1, double y1, double x2, double y2, std::string_view css_class);

// `anchor` is start, middle or end. `text` is plain.
std::string svg_text(double x, double y, std::string_view anchor, std::string_view text);

// "<title>tip</title>", which browsers show on hovering and screen readers read aloud.
std::string svg_title(std::string_view tip);

// A marker of a series.
struct Marker {
  double x = 0, y = 0;
  double size = 0;  // it extends so far to each side
  int shape = 0;    // one of six
  std::string_view css_class;
  std::string_view tip;  // its title; "": none
};
std::string svg_marker(const Marker& marker);

// A drawing of the given size, with its legend above and its caption below. Scrolls on its own if
// it does not fit. `id` is unique in the page. `title` and `caption` are plain text.
struct Figure {
  std::string id;
  std::string title;
  std::string caption;
  std::string legend;   // markup of list items, or ""
  std::string drawing;  // markup
  double width = 0;
  double height = 0;
  bool narrow = false;  // fits a phone without scrolling, and does not grow to the page's width
};
std::string figure(const Figure& parts);

// Maps values to a coordinate. REQUIRES positive values on a log axis.
struct Axis {
  bool log = false;
  double low = 0;
  double high = 1;
  double from = 0;  // coordinate of `low`
  double to = 1;

  double at(double value) const;
  std::vector<double> ticks() const;
};

// An axis with some room over the finite `values` (on a log axis, the positive ones).
Axis axis_over(const std::vector<double>& values, bool log, double from, double to);

}  // namespace fp8kv
