#include "support/reference/reference_formulas.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace fp8kv::test {
namespace {

using Vector = std::vector<double>;

}  // namespace

double activated(double x, Activation activation) {
  switch (activation) {
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::gelu_tanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * std::pow(x, 3))));
    case Activation::gelu_erf:
      return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::relu_squared:
      return std::pow(std::max(x, 0.0), 2);
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::softplus:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  }
  return 0;
}

double capped(double x, double cap) {
  return cap == 0 ? x : cap * std::tanh(x / cap);
}

double frequency(const RopeConfig& rope, double pair, double head_dim) {
  const double plain = 1 / std::pow(rope.theta, 2 * pair / head_dim);
  if (rope.scaling == RopeScaling::linear) return plain / rope.factor;
  if (rope.scaling == RopeScaling::none) return plain;
  if (rope.scaling == RopeScaling::yarn) {
    const auto pair_at = [&](double turns) {  // in the original context
      return head_dim / 2 * std::log(rope.original_context / turns / (2 * M_PI)) /
             std::log(rope.theta);
    };
    const double from = std::max(std::floor(pair_at(rope.beta_fast)), 0.0);
    const double to = std::min(std::ceil(pair_at(rope.beta_slow)), head_dim - 1);
    const double share = std::min(std::max((pair - from) / (to - from), 0.0), 1.0);
    return plain * (1 - share * (1 - 1 / rope.factor));
  }
  const double turns = rope.original_context * plain / (2 * M_PI);  // in the original context
  if (turns < rope.low_freq_factor) return plain / rope.factor;
  if (turns > rope.high_freq_factor) return plain;
  const double share =
      (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  return plain * (share + (1 - share) / rope.factor);
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

Vector expert_weights(const Vector& logits, const Vector& bias, const Routing& routing) {
  Vector choice = logits, weights(logits.size(), 0.0);
  double all = 0;
  for (const double logit : logits) all += std::exp(logit);
  for (size_t i = 0; i < choice.size(); ++i) {
    if (routing.score == RouterScore::sigmoid) choice[i] = sigmoid(logits[i]);
    if (bias.empty()) continue;
    if (routing.score == RouterScore::softmax) choice[i] = std::exp(logits[i]) / all;
    choice[i] += bias[i];
  }
  // The number of larger values, which is the place in a sorted list.
  const auto rank = [](const Vector& values, size_t i) {
    return std::count_if(values.begin(), values.end(), [&](double v) { return v > values[i]; });
  };
  const auto groups = static_cast<size_t>(routing.groups);
  const size_t size = choice.size() / groups;
  Vector worth;
  for (size_t g = 0; g < groups; ++g) {
    const auto begin = choice.begin() + static_cast<std::ptrdiff_t>(g * size);
    Vector group(begin, begin + static_cast<std::ptrdiff_t>(size));
    std::sort(group.rbegin(), group.rend());
    worth.push_back(group[0] + (size > 1 ? group[1] : 0));
  }
  for (size_t i = 0; i < choice.size(); ++i) {
    if (rank(worth, i / size) >= routing.groups_kept) choice[i] = -1e9;
  }
  double sum_of_chosen = 0, sum_of_all = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double weight =
        routing.score == RouterScore::sigmoid ? sigmoid(logits[i]) : std::exp(logits[i]);
    sum_of_all += weight;
    if (rank(choice, i) >= routing.per_token) continue;
    sum_of_chosen += weights[i] = weight;
  }
  if (routing.normalise || routing.score == RouterScore::softmax_of_chosen) {
    sum_of_all = sum_of_chosen;
  } else if (routing.score == RouterScore::sigmoid) {
    sum_of_all = 1;
  }
  for (double& weight : weights) weight *= routing.scale / sum_of_all;
  return weights;
}

}  // namespace fp8kv::test
