// Draws horizontal intervals, one below the other on one axis, each below its name and its numbers.
#pragma once

#include <string>
#include <vector>

namespace fp8kv {

struct IntervalRow {
  std::string name;  // shortened if it does not fit
  double value = 0;
  double low = 0;
  double high = 0;   // infinity: no bound
  std::string text;  // the interval in words
  std::string tip;   // everything in words, the name in full
  int style = 0;     // like Series::style
  std::string mark;  // a word behind the name, and a full marker; "": a hollow one
};

struct IntervalGroup {
  std::string name;
  std::vector<IntervalRow> rows;
};

// A vertical line.
struct IntervalLine {
  double at = 0;
  std::string name;
  bool dashed = false;
};

struct IntervalChart {
  std::string id;
  std::string title;
  std::string caption;
  std::string x_label;
  std::string (*tick)(double) = nullptr;
  double most = 2;  // intervals that go on above it end in an arrow
  std::vector<IntervalGroup> groups;
  std::vector<IntervalLine> lines;
};

// The axis covers all values up to `most`, and need not begin at zero.
std::string draw_intervals(const IntervalChart& chart);

}  // namespace fp8kv
