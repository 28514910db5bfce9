// Which choices are worth a measurement, and which one meets a budget best. Pure: costs go in,
// points come out, and measurements are told.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "fit/fit_report.h"

namespace fp8kv {

struct FitProblem {
  const std::vector<FitFormat>& formats;
  const std::vector<FormatCosts>& costs;  // [formats]
  FitBudget budget;
  bool mixes = true;  // the runtime can leave layers in 16 bit
  // Fills in `bytes` and `bytes_per_token` of a point, by its format and the layers left.
  std::function<void(FitPoint&)> count_bytes;
};

// Layers are left in 16 bit in one order for each format: those first that cost most for each byte
// saved. A point is a format and how many of these are left, so that the points of a format are a
// line from the uniform cache towards 16 bit.
class FitSearch {
 public:
  explicit FitSearch(FitProblem problem);

  // The points to measure next; none when the search is over. First: each format by itself, with
  // the layers left that the budget seems to take, and two points between for the frontier. Then,
  // with a bound of the KLD: more layers left where measurements exceed it, fewer where they allow.
  std::vector<FitPoint> next();
  // Measurements of all points of next().
  void tell(const std::vector<ConfirmedPoint>& measured);

  // All that was told, in rising order of bytes, then KLD.
  std::vector<ConfirmedPoint> points() const;
  // The place in points(): with a bound of the KLD, the fewest bytes that meet it. With a bound of
  // bytes, the least KLD within; of points that are not clearly worse, the fewest bytes.
  // nullopt where no point meets it.
  std::optional<size_t> chosen() const;

 private:
  struct Line {
    std::vector<size_t> order;  // into the costs of the layers, dearest first
    double factor = 1;          // measured over the sum of costs
    // Numbers of layers left that were measured: the most that fail, the fewest that pass.
    std::optional<size_t> fails, passes;
  };
  struct Asked {
    size_t format;
    size_t left;  // layers beside always_left
  };

  FitPoint point_at(size_t format, size_t left) const;
  double predicted(size_t format, size_t left) const;
  // The fewest layers left whose predicted KLD is at most this; all of them at most.
  size_t least_left(size_t format, double kld) const;
  std::optional<size_t> most_within_bytes(size_t format) const;
  std::vector<Asked> first_points() const;
  std::optional<Asked> refined(size_t format) const;
  bool meets(const ConfirmedPoint& measured) const;
  void correct(size_t format, const std::vector<ConfirmedPoint>& measured);
  uint64_t least_bytes_passing() const;

  FitProblem problem_;
  std::vector<Line> lines_;  // [formats]
  std::vector<Asked> asked_;
  std::vector<ConfirmedPoint> told_;
  int rounds_ = 0;
};

}  // namespace fp8kv
