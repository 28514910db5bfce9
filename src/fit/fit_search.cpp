#include "fit/fit_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "eval/standard_errors.h"

namespace fp8kv {
namespace {

// A prediction must stay below a bound by this factor: the measurement has to fit with two standard
// errors.
constexpr double kMargin = 1.2;
// Rounds of measurements after the first. Each asks for at most one point per format.
constexpr int kMostRefinements = 4;
// Shares of the uniform cache's KLD at which the frontier gets a point.
constexpr double kFrontierShares[] = {0.5, 0.15};

double with_margin(const ConfirmedPoint& point) {
  return point.total.kld + 2 * point.total.kld_error;
}

// Whether the KLD is higher by more than two standard errors of the difference, taken part by part.
bool clearly_worse(const ConfirmedPoint& a, const ConfirmedPoint& than) {
  FP8KV_ASSERT(a.parts.size() == than.parts.size());
  std::vector<double> differences, counts;
  for (size_t i = 0; i < a.parts.size(); ++i) {
    differences.push_back(a.parts[i].kld - than.parts[i].kld);
    counts.push_back(static_cast<double>(a.parts[i].tokens));
  }
  const MeanAndError difference = mean_over_parts(differences, counts);
  return difference.mean > 0 && difference.is_clear();
}

std::vector<size_t> dearest_first(const std::vector<LayerCost>& layers) {
  std::vector<size_t> order(layers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // A layer whose loss is NaN counts as the costliest.
  const auto cost_of_byte = [&](size_t i) {
    if (std::isnan(layers[i].kld)) return std::numeric_limits<double>::infinity();
    return layers[i].kld / static_cast<double>(std::max<uint64_t>(layers[i].saved, 1));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return cost_of_byte(a) > cost_of_byte(b); });
  return order;
}

}  // namespace

FitSearch::FitSearch(FitProblem problem) : problem_(std::move(problem)) {
  for (const FormatCosts& costs : problem_.costs) {
    Line line;
    line.order = dearest_first(costs.layers);
    double sum = 0;
    for (const LayerCost& each : costs.layers) sum += each.kld;
    if (std::isfinite(sum) && sum > 0) line.factor = costs.all_kld / sum;
    lines_.push_back(std::move(line));
  }
}

double FitSearch::predicted(size_t format, size_t left) const {
  const Line& line = lines_[format];
  double sum = 0;
  for (size_t i = left; i < line.order.size(); ++i) {
    sum += problem_.costs[format].layers[line.order[i]].kld;
  }
  return line.factor * sum;
}

FitPoint FitSearch::point_at(size_t format, size_t left) const {
  FitPoint point;
  point.format = format;
  point.left = problem_.formats[format].always_left;
  for (size_t i = 0; i < left; ++i) {
    point.left.push_back(problem_.costs[format].layers[lines_[format].order[i]].layer);
  }
  std::sort(point.left.begin(), point.left.end());
  point.predicted = predicted(format, left);
  problem_.count_bytes(point);
  return point;
}

size_t FitSearch::least_left(size_t format, double kld) const {
  size_t left = 0;
  while (left < lines_[format].order.size() && !(predicted(format, left) <= kld)) ++left;
  return left;
}

std::optional<size_t> FitSearch::most_within_bytes(size_t format) const {
  const size_t layers = lines_[format].order.size();
  std::optional<size_t> most;
  for (size_t left = 0; left < (problem_.mixes ? layers : 1); ++left) {
    if (point_at(format, left).bytes > *problem_.budget.most_bytes) break;
    most = left;
  }
  return most;
}

std::vector<FitSearch::Asked> FitSearch::first_points() const {
  std::vector<Asked> points;
  for (size_t format = 0; format < lines_.size(); ++format) {
    const size_t layers = lines_[format].order.size();
    std::vector<size_t> lefts = {0};
    if (problem_.mixes) {
      const std::optional<double> bound = problem_.budget.max_kld;
      if (bound) lefts.push_back(least_left(format, *bound / kMargin));
      for (const double share : kFrontierShares) {
        lefts.push_back(least_left(format, share * predicted(format, 0)));
      }
    }
    if (problem_.budget.most_bytes) lefts.push_back(most_within_bytes(format).value_or(0));
    std::sort(lefts.begin(), lefts.end());
    lefts.erase(std::unique(lefts.begin(), lefts.end()), lefts.end());
    // With every layer left in 16 bit, nothing remains of the format.
    for (const size_t left : lefts) {
      if (left < layers) points.push_back({format, left});
    }
  }
  return points;
}

uint64_t FitSearch::least_bytes_passing() const {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (const ConfirmedPoint& each : told_) {
    if (meets(each)) least = std::min(least, each.point.bytes);
  }
  return least;
}

// The next number of layers to leave, if it may beat the points that are known to pass.
std::optional<FitSearch::Asked> FitSearch::refined(size_t format) const {
  const Line& line = lines_[format];
  // No choice between these two was measured yet.
  const size_t above = line.fails ? *line.fails + 1 : 0;
  const size_t end = line.passes ? *line.passes : line.order.size();
  if (above >= end) return std::nullopt;
  size_t left = std::max(above, least_left(format, *problem_.budget.max_kld / kMargin));
  if (left >= end) {
    if (line.passes) return std::nullopt;
    left = end - 1;
  }
  if (point_at(format, left).bytes >= least_bytes_passing()) return std::nullopt;
  return Asked{format, left};
}

std::vector<FitPoint> FitSearch::next() {
  asked_.clear();
  if (told_.empty()) {
    asked_ = first_points();
  } else if (problem_.mixes && problem_.budget.max_kld && rounds_ < kMostRefinements) {
    ++rounds_;
    for (size_t format = 0; format < lines_.size(); ++format) {
      if (const auto asked = refined(format)) asked_.push_back(*asked);
    }
  }
  std::vector<FitPoint> points;
  for (const Asked& each : asked_) points.push_back(point_at(each.format, each.left));
  return points;
}

void FitSearch::tell(const std::vector<ConfirmedPoint>& measured) {
  FP8KV_ASSERT(measured.size() == asked_.size());
  for (size_t i = 0; i < measured.size(); ++i) {
    Line& line = lines_[asked_[i].format];
    const size_t left = asked_[i].left;
    if (meets(measured[i])) {
      line.passes = std::min(line.passes.value_or(left), left);
    } else {
      line.fails = std::max(line.fails.value_or(left), left);
    }
    told_.push_back(measured[i]);
  }
  for (size_t format = 0; format < lines_.size(); ++format) correct(format, measured);
}

// Scales the format's predictions to the measurement that is nearest to the bound.
void FitSearch::correct(size_t format, const std::vector<ConfirmedPoint>& measured) {
  const ConfirmedPoint* nearest = nullptr;
  const auto distance = [&](const ConfirmedPoint& each) {
    return std::abs(std::log(each.total.kld / *problem_.budget.max_kld));
  };
  for (const ConfirmedPoint& each : measured) {
    const bool usable = each.point.predicted > 0 && each.total.kld > 0 &&
                        std::isfinite(each.total.kld / each.point.predicted);
    if (each.point.format != format || !usable || !problem_.budget.max_kld) continue;
    if (!nearest || distance(each) < distance(*nearest)) nearest = &each;
  }
  if (nearest) lines_[format].factor *= nearest->total.kld / nearest->point.predicted;
}

bool FitSearch::meets(const ConfirmedPoint& measured) const {
  if (!std::isfinite(measured.total.kld)) return false;
  if (problem_.budget.max_kld) return with_margin(measured) <= *problem_.budget.max_kld;
  return measured.point.bytes <= *problem_.budget.most_bytes;
}

std::vector<ConfirmedPoint> FitSearch::points() const {
  std::vector<ConfirmedPoint> sorted = told_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::tie(a.point.bytes, a.total.kld) < std::tie(b.point.bytes, b.total.kld);
  });
  return sorted;
}

std::optional<size_t> FitSearch::chosen() const {
  const std::vector<ConfirmedPoint> all = points();
  std::optional<size_t> best;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!meets(all[i])) continue;
    if (problem_.budget.max_kld) return i;
    if (!best || all[i].total.kld < all[*best].total.kld) best = i;
  }
  if (!best) return std::nullopt;
  for (size_t i = 0; i < *best; ++i) {
    if (meets(all[i]) && !clearly_worse(all[i], all[*best])) return i;
  }
  return best;
}

}  // namespace fp8kv
