// The search for a cache on invented costs and losses. The oracle tries every point.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include <doctest/doctest.h>

#include "fit/fit_search.h"

using namespace fp8kv;

namespace {

constexpr uint64_t kLayerBytes = 64;  // in 16 bit

struct MadeFormat {
  uint64_t layer_bytes;           // bytes of a layer in this format
  std::vector<double> true_loss;  // loss of each layer
  double together = 1;            // the loss of all layers, relative to the sum
};

// Formats with known losses, and a measurement that returns them.
class MadeModel {
 public:
  explicit MadeModel(std::vector<MadeFormat> made) : made_(std::move(made)) {
    for (const MadeFormat& each : made_) {
      FitFormat format;
      format.name = "format " + std::to_string(formats_.size());
      formats_.push_back(std::move(format));
      FormatCosts costs;
      for (size_t i = 0; i < each.true_loss.size(); ++i) {
        costs.layers.push_back(
            {static_cast<int64_t>(i), each.true_loss[i], 0, kLayerBytes - each.layer_bytes});
        costs.all_kld += each.true_loss[i];
      }
      costs.all_kld *= each.together;
      costs_.push_back(std::move(costs));
    }
  }

  size_t layers() const { return made_[0].true_loss.size(); }
  double loss_of(const FitPoint& point) const {
    const MadeFormat& of = made_[point.format];
    double sum = 0;
    for (size_t i = 0; i < layers(); ++i) {
      const auto& left = point.left;
      if (!std::binary_search(left.begin(), left.end(), static_cast<int64_t>(i))) {
        sum += of.true_loss[i];
      }
    }
    return sum * of.together * confirmed_over_chosen;
  }
  uint64_t bytes_of(const FitPoint& point) const {
    return point.left.size() * kLayerBytes +
           (layers() - point.left.size()) * made_[point.format].layer_bytes;
  }
  FitProblem problem(const FitBudget& budget, bool mixes = true) const {
    return {formats_, costs_, budget, mixes,
            [this](FitPoint& point) { point.bytes = point.bytes_per_token = bytes_of(point); }};
  }
  ConfirmedPoint measure(const FitPoint& point) const {
    ConfirmedPoint measured;
    measured.point = point;
    measured.total.kld = loss_of(point);
    measured.total.kld_error = relative_error * measured.total.kld;
    for (size_t part = 0; part < 4; ++part) {
      const double off = ((part + point.format) % 2 == 0 ? 1 : -1) * relative_error;
      measured.parts.push_back({100, 100 * measured.total.kld * (1 + off)});
    }
    return measured;
  }
  // Runs the search until it asks for no more points.
  FitSearch searched(const FitBudget& budget, bool mixes = true) const {
    FitSearch search(problem(budget, mixes));
    for (;;) {
      const std::vector<FitPoint> points = search.next();
      if (points.empty()) return search;
      std::vector<ConfirmedPoint> measured;
      for (const FitPoint& each : points) measured.push_back(measure(each));
      search.tell(measured);
    }
  }
  // The fewest bytes among all points that leave layers out in the order of their cost.
  uint64_t least_bytes(double max_kld) const {
    uint64_t least = std::numeric_limits<uint64_t>::max();
    for (size_t format = 0; format < made_.size(); ++format) {
      std::vector<int64_t> order(layers());
      std::iota(order.begin(), order.end(), 0);
      const std::vector<double>& loss = made_[format].true_loss;
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return loss[static_cast<size_t>(a)] > loss[static_cast<size_t>(b)];
      });
      for (size_t left = 0; left < layers(); ++left) {
        FitPoint point;
        point.format = format;
        point.left.assign(order.begin(), order.begin() + static_cast<ptrdiff_t>(left));
        std::sort(point.left.begin(), point.left.end());
        const double loss_at = loss_of(point);
        if (loss_at * (1 + 2 * relative_error) <= max_kld) {
          least = std::min(least, bytes_of(point));
        }
      }
    }
    return least;
  }

  double confirmed_over_chosen = 1;  // the held-out text's loss, relative to the other's
  double relative_error = 0.05;

 private:
  std::vector<MadeFormat> made_;
  std::vector<FitFormat> formats_;
  std::vector<FormatCosts> costs_;
};

MadeModel model_of(uint32_t seed) {
  std::mt19937 random(seed);
  const auto losses = [&](double scale) {
    std::vector<double> made;
    for (int i = 0; i < 24; ++i) {
      made.push_back(scale * std::exp(-static_cast<double>(random() % 50) / 10));
    }
    return made;
  };
  return MadeModel({{32, losses(0.01), 1.3}, {18, losses(0.1), 2.0}});
}

}  // namespace

TEST_CASE("fit search: meets a bound of the loss with at most a layer more than the best point") {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    MadeModel model = model_of(seed);
    for (const double shift : {0.5, 1.0, 2.0}) {
      model.confirmed_over_chosen = shift;
      CAPTURE(seed);
      CAPTURE(shift);
      const FitSearch search = model.searched({0.02, std::nullopt});
      REQUIRE(search.chosen().has_value());
      const ConfirmedPoint chosen = search.points()[*search.chosen()];
      CHECK(chosen.total.kld + 2 * chosen.total.kld_error <= 0.02);
      CHECK(chosen.point.bytes <= model.least_bytes(0.02) + kLayerBytes);
    }
  }
}

TEST_CASE("fit search: takes the least loss within bytes, and measures nothing twice") {
  const MadeModel model = model_of(3);
  const uint64_t bound = 24 * 32 + 4 * 32;  // four layers of the first format in 16 bit
  const FitSearch search = model.searched({std::nullopt, bound});
  const std::vector<ConfirmedPoint> points = search.points();
  REQUIRE(search.chosen().has_value());
  const ConfirmedPoint& chosen = points[*search.chosen()];
  CHECK(chosen.point.bytes <= bound);
  for (size_t i = 0; i < points.size(); ++i) {
    if (points[i].point.bytes <= bound) CHECK(points[i].total.kld >= chosen.total.kld);
    for (size_t j = 0; j < i; ++j) CHECK_FALSE(points[i].point == points[j].point);
  }
}

TEST_CASE("fit search: of losses that cannot be told apart, takes the fewer bytes") {
  const std::vector<double> loss(8, 0.001);
  MadeModel model({{32, loss}, {18, std::vector<double>(8, 0.00101)}});
  model.relative_error = 0.2;
  const FitSearch search = model.searched({std::nullopt, 8 * 32}, false);
  REQUIRE(search.chosen().has_value());
  CHECK(search.points()[*search.chosen()].point.format == 1);
}

TEST_CASE("fit search: a runtime that cannot mix gets whole caches alone") {
  const MadeModel model = model_of(1);
  const FitSearch search = model.searched({10.0, std::nullopt}, false);
  CHECK(search.points().size() == 2);
  for (const ConfirmedPoint& each : search.points()) CHECK(each.point.left.empty());
  REQUIRE(search.chosen().has_value());
  CHECK(search.points()[*search.chosen()].point.format == 1);
}

TEST_CASE("fit search: says where no point meets the budget") {
  const MadeModel model = model_of(2);
  CHECK_FALSE(model.searched({1e-9, std::nullopt}).chosen().has_value());
  CHECK_FALSE(model.searched({std::nullopt, 24}).chosen().has_value());
}

TEST_CASE("fit search: a layer whose loss is not a number is left, and no broken cache is chosen") {
  std::vector<double> loss(8, 0.001);
  loss[5] = std::numeric_limits<double>::quiet_NaN();
  const MadeModel model({{32, loss}});
  for (const FitBudget& budget : {FitBudget{0.02, std::nullopt}, FitBudget{std::nullopt, 400}}) {
    const FitSearch search = model.searched(budget);
    REQUIRE(search.chosen().has_value());
    const ConfirmedPoint chosen = search.points()[*search.chosen()];
    CHECK(std::isfinite(chosen.total.kld));
    CHECK(std::find(chosen.point.left.begin(), chosen.point.left.end(), 5) !=
          chosen.point.left.end());
  }
}

TEST_CASE("fit search: layers that the runtime leaves by itself are in every point") {
  const MadeModel model = model_of(5);
  std::vector<FitFormat> formats(1);
  formats[0].name = "turboquant_k8v4";
  formats[0].always_left = {0, 23};
  std::vector<FormatCosts> costs(1);
  for (int64_t layer = 1; layer < 23; ++layer) costs[0].layers.push_back({layer, 0.01, 0, 10});
  costs[0].all_kld = 0.22;
  FitSearch search({formats, costs, {0.1, std::nullopt}, true, [](FitPoint& point) {
                      point.bytes = point.bytes_per_token = point.left.size();
                    }});
  for (const FitPoint& each : search.next()) {
    CHECK(each.left.front() == 0);
    CHECK(each.left.back() == 23);
    CHECK(std::is_sorted(each.left.begin(), each.left.end()));
  }
}
