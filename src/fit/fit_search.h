// Decides which choices to measure, and which one meets a budget best. Pure: it takes costs and
// measurements, and returns points.
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
  // Fills in `bytes` and `bytes_per_token` of a point, from its format and the layers left.
  std::function<void(FitPoint&)> count_bytes;
};

// Each format leaves layers in 16 bit in one fixed order: those that cost most per byte saved come
// first. A point is a format and the number of layers left. So each format's points form a line
// from the uniform cache towards 16 bit.
class FitSearch {
 public:
  explicit FitSearch(FitProblem problem);

  // Returns the points to measure next; none if the search is over. The first call returns each
  // format alone, each with the layers left that the budget seems to need, and two points between
  // for the frontier. With a bound of the KLD, later calls leave more layers if measurements exceed
  // it, and fewer if they allow it.
  std::vector<FitPoint> next();
  // Takes the measurements of all points of the last next().
  void tell(const std::vector<ConfirmedPoint>& measured);

  // All measured points, ascending by bytes, then by KLD.
  std::vector<ConfirmedPoint> points() const;
  // The index of the choice in points(). With a bound of the KLD: the fewest bytes that keep it.
  // With a bound of bytes: the least KLD; among points that are not clearly worse, the fewest
  // bytes.
  // nullopt if no point meets the budget.
  std::optional<size_t> chosen() const;

 private:
  struct Line {
    std::vector<size_t> order;  // into the layers' costs, costliest first
    double factor = 1;          // measured KLD over the sum of costs
    // The measured numbers of layers left: the most that fails, and the fewest that pass.
    std::optional<size_t> fails, passes;
  };
  struct Asked {
    size_t format;
    size_t left;  // layers beside always_left
  };

  FitPoint point_at(size_t format, size_t left) const;
  double predicted(size_t format, size_t left) const;
  // The fewest layers left whose predicted KLD is at most `kld`, or all layers.
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
