#include "backend/cpu/cpu_route.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backend/cpu/memory/cpu_numbers.h"
#include "base/error.h"

namespace fp8kv {
namespace {

constexpr float kTaken = -std::numeric_limits<float>::infinity();

// The elements of a view [count], or `otherwise` for each if there is no view.
std::vector<float> elements(const std::optional<ConstTensorView>& view, int64_t count,
                            float otherwise) {
  std::vector<float> values(static_cast<size_t>(count), otherwise);
  for (int64_t i = 0; view && i < count; ++i) values[static_cast<size_t>(i)] = number_at(*view, i);
  return values;
}

// The index of the largest value that is not taken; the first among equals. REQUIRES one that is
// not taken.
size_t best_of(const std::vector<float>& values, const std::vector<char>& taken) {
  size_t best = values.size();
  for (size_t i = 0; i < values.size(); ++i) {
    if (!taken[i] && (best == values.size() || values[i] > values[best])) best = i;
  }
  FP8KV_ASSERT(best < values.size());
  return best;
}

// One row at a time; keeps its memory.
class Router {
 public:
  Router(const Routing& routing, const RouterTerms& terms, int64_t count)
      : routing_(routing),
        biased_(terms.choice_bias.has_value()),
        bias_(elements(terms.choice_bias, count, 0.0f)),
        factors_(elements(terms.factors, count, 1.0f)) {}

  // given [per_token]: the experts to take; null: this chooses
  void run(const float* logits, const int32_t* given, int32_t* ids, float* weights) {
    const size_t n = bias_.size(), k = static_cast<size_t>(routing_.per_token);
    taken_.assign(n, 0);
    set_choice(logits);
    if (std::any_of(choice_.begin(), choice_.end(), [](float x) { return std::isnan(x); })) {
      for (size_t j = 0; j < k; ++j) {
        ids[j] = static_cast<int32_t>(j);
        weights[j] = std::numeric_limits<float>::quiet_NaN();
      }
      return;
    }
    if (given != nullptr) {
      std::copy_n(given, k, ids);
      return weigh(logits, ids, weights);
    }
    if (routing_.groups > 1) take_groups();
    for (size_t j = 0; j < k; ++j) {
      const size_t best = best_of(choice_, taken_);
      taken_[best] = 1;
      ids[j] = static_cast<int32_t>(best);
    }
    std::sort(ids, ids + k);
    weigh(logits, ids, weights);
  }

 private:
  static float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }
  static float softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

  // The score of a logit by itself.
  float score_of(float logit) const {
    return routing_.score == RouterScore::sigmoid ? sigmoid(logit) : std::sqrt(softplus(logit));
  }
  bool is_by_itself() const {
    return routing_.score == RouterScore::sigmoid || routing_.score == RouterScore::sqrt_softplus;
  }

  // Softmax keeps the order of the logits. So the logits themselves are compared, unless a bias is
  // added to the softmax.
  void set_choice(const float* logits) {
    const size_t n = bias_.size();
    choice_.assign(logits, logits + n);
    if (is_by_itself()) {
      for (float& x : choice_) x = score_of(x);
    } else if (routing_.score == RouterScore::softmax && biased_) {
      const float most = *std::max_element(logits, logits + n);
      float sum = 0;
      for (float& x : choice_) sum += x = std::exp(x - most);
      for (float& x : choice_) x /= sum;
    }
    for (size_t i = 0; i < n; ++i) choice_[i] += bias_[i];
  }

  // Marks the experts of all groups but the best ones as taken.
  void take_groups() {
    const auto groups = static_cast<size_t>(routing_.groups);
    const size_t size = choice_.size() / groups;
    std::vector<float> worth(groups);
    for (size_t g = 0; g < groups; ++g) {
      float first = kTaken, second = kTaken;
      for (size_t i = g * size; i < (g + 1) * size; ++i) {
        second = std::max(second, std::min(first, choice_[i]));
        first = std::max(first, choice_[i]);
      }
      worth[g] = routing_.group_worth == GroupWorth::largest ? first : first + second;
    }
    std::vector<char> kept(groups);
    for (int64_t i = 0; i < routing_.groups_kept; ++i) kept[best_of(worth, kept)] = 1;
    for (size_t i = 0; i < taken_.size(); ++i) taken_[i] = !kept[i / size];
  }

  // Weights of sparse_mixer. Marks the chosen experts as taken once more, the best first.
  void weigh_near(const float* logits, const int32_t* ids, float* weights) {
    const size_t n = choice_.size(), k = static_cast<size_t>(routing_.per_token);
    taken_.assign(n, 0);
    for (size_t rank = 0; rank < k; ++rank) {
      const size_t best = best_of(choice_, taken_);
      const float most = logits[best];
      float sum = 0;
      for (size_t i = 0; i < n; ++i) {
        const float distance = (most - logits[i]) / std::max(std::abs(logits[i]), most);
        if (!taken_[i] && !(distance > static_cast<float>(routing_.near))) {
          sum += std::exp(logits[i] - most);
        }
      }
      taken_[best] = 1;
      weights[std::find(ids, ids + k, static_cast<int32_t>(best)) - ids] = 1 / sum;
    }
  }

  void weigh(const float* logits, const int32_t* ids, float* weights) {
    const size_t k = static_cast<size_t>(routing_.per_token);
    if (routing_.score == RouterScore::sparse_mixer) {
      weigh_near(logits, ids, weights);
    } else if (is_by_itself()) {
      for (size_t j = 0; j < k; ++j) weights[j] = score_of(logits[ids[j]]);
    } else {
      float most = logits[ids[0]];
      for (size_t j = 1; j < k; ++j) most = std::max(most, logits[ids[j]]);
      float sum = 0;
      for (size_t j = 0; j < k; ++j) sum += weights[j] = std::exp(logits[ids[j]] - most);
      if (routing_.score == RouterScore::softmax) {
        sum = 0;
        for (size_t i = 0; i < choice_.size(); ++i) sum += std::exp(logits[i] - most);
      }
      for (size_t j = 0; j < k; ++j) weights[j] /= sum;
    }
    float sum = static_cast<float>(routing_.epsilon);
    for (size_t j = 0; j < k; ++j) sum += weights[j];
    for (size_t j = 0; j < k; ++j) {
      if (routing_.normalise) weights[j] /= sum;
      weights[j] *= static_cast<float>(routing_.scale);
      weights[j] *= factors_[static_cast<size_t>(ids[j])];
    }
  }

  const Routing& routing_;
  const bool biased_;
  const std::vector<float> bias_, factors_;  // see RouterTerms
  std::vector<float> choice_;                // scores that decide the choice
  std::vector<char> taken_;                  // already chosen, or excluded
};

// Rows of one job: some microseconds of work.
constexpr int64_t kJobRows = 16;

}  // namespace

void cpu_route(ThreadPool& pool, const ConstTensorView& logits, const Routing& routing,
               const RouterTerms& terms, const Routed& out) {
  const int64_t n = logits.shape[0], count = logits.shape[1], k = routing.per_token;
  FP8KV_ASSERT(k <= count && count % routing.groups == 0);
  pool.run((n + kJobRows - 1) / kJobRows, [&](int64_t job, int /*thread*/) {
    Router router(routing, terms, count);
    for (int64_t row = job * kJobRows; row < std::min(n, (job + 1) * kJobRows); ++row) {
      router.run(logits.as<const float>() + row * count,
                 terms.given ? terms.given->as<int32_t>() + row * k : nullptr,
                 out.ids.as<int32_t>() + row * k, out.weights.as<float>() + row * k);
    }
  });
  if (!out.counts) return;
  for (int64_t i = 0; i < n * k; ++i) ++out.counts->as<uint64_t>()[out.ids.as<int32_t>()[i]];
}

}  // namespace fp8kv
