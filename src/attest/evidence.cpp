#include "attest/evidence.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.h"

namespace fp8kv {
namespace {

// The shares of the capital that are bet, each with an equal part of it. Small shares suit
// hypotheses that hardly differ, large ones suit hypotheses that differ at once.
constexpr std::array<double, 7> kShares = {0.03, 0.06, 0.125, 0.25, 0.5, 0.75, 0.95};

// The number of tokens in a bet. Small, so that a hypothesis is excluded after a few hundred
// tokens; more than one, so that a single token's noise does not decide.
constexpr size_t kBlock = 16;

// Below this distance, the predictions of a block are the same except for the last bits.
constexpr double kLeastDistance = 1e-9;

// Tokens that the caches hardly move count as if moved by this share of the window's mean.
constexpr double kLeastWeight = 0.1;

double mean_capital(std::span<const double> log_capital) {
  const double most = *std::max_element(log_capital.begin(), log_capital.end());
  double sum = 0;
  for (const double each : log_capital) sum += std::exp(each - most);
  return most + std::log(sum / static_cast<double>(log_capital.size()));
}

double summed_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return sum;
}

}  // namespace

Evidence::Evidence(size_t n_hypotheses, size_t n_tests, double level)
    : n_weighting_(n_hypotheses),
      stride_(n_tests),
      threshold_(std::log(static_cast<double>(n_tests) / level)),
      games_(n_tests * n_tests),
      excluded_after_(n_hypotheses) {
  FP8KV_ASSERT(n_hypotheses > 0 && n_hypotheses <= n_tests && level > 0);
}

// The inverse of how far the caches move each token. It is known before the server answers.
std::vector<double> Evidence::weights_of(const EvidenceWindow& window) const {
  std::vector<double> moved(window.server.size());
  for (size_t h = 1; h < std::min(n_weighting_, window.predicted.size()); ++h) {
    if (window.predicted[h].empty()) continue;
    for (size_t i = 0; i < moved.size(); ++i) {
      moved[i] += std::abs(window.predicted[h][i] - window.predicted[0][i]);
    }
  }
  double mean = 0;
  for (const double each : moved) mean += each / static_cast<double>(moved.size());
  for (double& each : moved) each = mean > 0 ? mean / (each + kLeastWeight * mean) : 1;
  return moved;
}

void Evidence::add(EvidenceWindow window) {
  FP8KV_ASSERT(window.predicted.size() == size());
  tokens_ += window.server.size();
  weights_.push_back(weights_of(window));
  windows_.push_back(std::move(window));
  for (size_t h = 0; h < size(); ++h) {
    for (size_t g = 0; g < h; ++g) play(windows_.size() - 1, h, g);
  }
  note_exclusions();
}

void Evidence::extend(const std::vector<std::vector<std::vector<double>>>& predicted) {
  const size_t before = size();
  FP8KV_ASSERT(before + predicted.size() <= stride_);
  excluded_after_.resize(before + predicted.size());
  for (size_t w = 0; w < windows_.size(); ++w) {
    for (const auto& each : predicted) windows_[w].predicted.push_back(each[w]);
    for (size_t h = before; h < size(); ++h) {
      for (size_t g = 0; g < h; ++g) play(w, h, g);
    }
  }
  note_exclusions();
}

double Evidence::distance(size_t window, const std::vector<double>& a, const std::vector<double>& b,
                          size_t begin, size_t end) const {
  const std::vector<double>& weights = weights_[window];
  double sum = 0;
  for (size_t i = begin; i < std::min(end, a.size()); ++i)
    sum += std::abs(a[i] - b[i]) * weights[i];
  return sum;
}

void Evidence::bet(size_t h, size_t g, double apart, double won) {
  Game& played = game(h, g);
  for (size_t i = 0; i < kBets; ++i) played.log_capital[i] += std::log1p(kShares[i] * won);
  played.best = std::max(played.best, mean_capital(played.log_capital));
  played.distance += apart;
  ++played.blocks;
}

void Evidence::play(size_t window, size_t h, size_t g) {
  const EvidenceWindow& at = windows_[window];
  const std::vector<double>&of_h = at.predicted[h], &of_g = at.predicted[g];
  if (of_h.empty() || of_g.empty()) return;
  for (size_t begin = 0; begin < at.server.size(); begin += kBlock) {
    const size_t end = begin + kBlock;
    const double between = distance(window, of_h, of_g, begin, end);
    if (between < kLeastDistance) {
      bet(h, g, 0, 0);
      bet(g, h, 0, 0);
      continue;
    }
    const double from_h = distance(window, at.server, of_h, begin, end);
    const double from_g = distance(window, at.server, of_g, begin, end);
    const double x = std::clamp((from_g - from_h) / between, -1.0, 1.0);
    bet(h, g, between, x);
    bet(g, h, between, -x);
  }
}

void Evidence::note_exclusions() {
  for (size_t g = 0; g < size(); ++g) {
    if (excluded_after_[g] == 0 && against(g) >= threshold_) excluded_after_[g] = windows_.size();
  }
}

bool Evidence::same_predictions(size_t h, size_t g) const {
  return h == g || (game(h, g).blocks > 0 && game(h, g).distance == 0);
}

double Evidence::against(size_t g) const {
  double most = 0;
  for (size_t h = 0; h < size(); ++h) {
    if (h != g) most = std::max(most, game(h, g).best);
  }
  return most;
}

double Evidence::capital(size_t h, size_t g) const {
  return mean_capital(game(h, g).log_capital);
}

double Evidence::residual(size_t h) const {
  double sum = 0, tokens = 0;
  for (const EvidenceWindow& window : windows_) {
    if (window.predicted[h].empty()) continue;
    sum += summed_distance(window.server, window.predicted[h]);
    tokens += static_cast<double>(window.server.size());
  }
  return tokens > 0 ? sum / tokens : 0;
}

double Evidence::effect(size_t h) const {
  double sum = 0, tokens = 0;
  for (const EvidenceWindow& window : windows_) {
    if (window.predicted[h].empty()) continue;
    sum += summed_distance(window.predicted[0], window.predicted[h]);
    tokens += static_cast<double>(window.server.size());
  }
  return tokens > 0 ? sum / tokens : 0;
}

double Evidence::apart(size_t h, size_t g) const {
  double between = 0, from_server = 0;
  for (size_t w = 0; w < windows_.size(); ++w) {
    const EvidenceWindow& window = windows_[w];
    if (window.predicted[h].empty() || window.predicted[g].empty()) continue;
    between += distance(w, window.predicted[h], window.predicted[g]);
    from_server += distance(w, window.server, window.predicted[g]);
  }
  return between == 0 ? 0 : between / from_server;
}

double Evidence::misfit(size_t h, size_t a, size_t b) const {
  double from_server = 0, between = 0;
  for (size_t w = 0; w < windows_.size(); ++w) {
    const EvidenceWindow& window = windows_[w];
    const std::vector<double>&of_a = window.predicted[a], &of_b = window.predicted[b];
    if (window.predicted[h].empty() || of_a.empty() || of_b.empty()) continue;
    from_server += distance(w, window.server, window.predicted[h]);
    between += distance(w, of_a, of_b);
  }
  return between > 0 ? from_server / between : 0;
}

double Evidence::explained(size_t h) const {
  double from_h = 0, from_base = 0;
  for (size_t w = 0; w < windows_.size(); ++w) {
    const EvidenceWindow& window = windows_[w];
    if (window.predicted[h].empty()) continue;
    from_h += distance(w, window.server, window.predicted[h]);
    from_base += distance(w, window.server, window.predicted[0]);
  }
  return from_base > 0 ? 1 - from_h / from_base : 0;
}

double Evidence::departure(size_t h) const {
  double server = 0, own = 0;
  for (size_t w = 0; w < windows_.size(); ++w) {
    const EvidenceWindow& window = windows_[w];
    if (window.predicted[h].empty()) continue;
    server += distance(w, window.server, window.predicted[0]);
    own += distance(w, window.predicted[h], window.predicted[0]);
  }
  return own > 0 ? server / own : 0;
}

}  // namespace fp8kv
