// A sequential test of which predictions a server's numbers fit. It may stop at any time.
//
// Every pair of hypotheses plays a game. In each block of 16 tokens, hypothesis h bets against g.
// It wins or loses by how much closer the server is to h than to g:
//
//   x = (sum |server - g| - sum |server - h|) / sum |h - g|, which is from -1 to 1,
//
// Each token is divided by how far the caches move it. The one assumption: if the server computes
// with g, its distance from g is noise that favours no other hypothesis. Then the mean of x is 0 or
// less, whatever came before.
//
// The capital of h is the product of (1 + bet x). By Ville's inequality it ever exceeds C with
// probability 1 / C at most. So g is excluded once a capital against it reaches n_tests / level,
// and the truth is excluded with probability `level` at most. The noise may have any distribution,
// and tokens may depend on each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fp8kv {

// The log probabilities of one window's tokens.
struct EvidenceWindow {
  std::vector<double> server;
  std::vector<std::vector<double>> predicted;  // [hypotheses]; empty if not computed
};

class Evidence {
 public:
  // `n_tests`: the total number of hypotheses, with those added later. The effects of the others
  // are measured from hypothesis 0.
  Evidence(size_t n_hypotheses, size_t n_tests, double level);

  // REQUIRES predictions of hypothesis 0.
  void add(EvidenceWindow window);

  // Adds hypotheses, with their predictions for all windows so far.   [new ones][windows]
  void extend(const std::vector<std::vector<std::vector<double>>>& predicted);

  size_t size() const { return excluded_after_.size(); }
  const std::vector<EvidenceWindow>& windows() const { return windows_; }
  uint64_t tokens() const { return tokens_; }

  // The number of windows after which `g` was excluded; 0: not excluded.
  size_t excluded_after(size_t g) const { return excluded_after_[g]; }
  bool is_excluded(size_t g) const { return excluded_after_[g] > 0; }
  // Whether both predicted the same numbers in every window.
  bool same_predictions(size_t h, size_t g) const;

  // The largest logarithm of a capital against `g`.
  double against(size_t g) const;
  // The logarithm of the capital of `h` against `g` after all windows so far.
  double capital(size_t h, size_t g) const;
  // The logarithm of the capital that excludes a hypothesis.
  double threshold() const { return threshold_; }

  // Mean |server - predicted| over the windows that `h` was computed for.
  double residual(size_t h) const;
  // Mean |predicted - prediction of hypothesis 0|, over the same windows.
  double effect(size_t h) const;
  // The distance between two predictions, relative to the server's distance from `g`. Well below 1,
  // no text of ordinary length tells them apart.
  double apart(size_t h, size_t g) const;
  // The server's distance from `h`, relative to the distance between two predictions `a` and `b`.
  // 0 if no window has all three, or if `a` and `b` are equal.
  double misfit(size_t h, size_t a, size_t b) const;
  // The share of the server's deviations from hypothesis 0 that `h` explains: 1 is all, 0 or less
  // is nothing. Deviations are weighted as in the test, over the windows that `h` was computed for.
  double explained(size_t h) const;
  // The server's distance from hypothesis 0, relative to that of `h`: 0 to about 1.
  double departure(size_t h) const;

 private:
  static constexpr size_t kBets = 7;
  // The bets of one hypothesis against another.
  struct Game {
    std::array<double, kBets> log_capital{};
    double best = 0;  // maximum so far of the logarithm of the mean capital
    double distance = 0;
    size_t blocks = 0;
  };

  std::vector<double> weights_of(const EvidenceWindow& window) const;
  void play(size_t window, size_t h, size_t g);
  void bet(size_t h, size_t g, double apart, double won);
  // Weighted sum of |a - b| over tokens [begin, end) of a window.
  double distance(size_t window, const std::vector<double>& a, const std::vector<double>& b,
                  size_t begin = 0, size_t end = SIZE_MAX) const;
  void note_exclusions();
  Game& game(size_t h, size_t g) { return games_[h * stride_ + g]; }
  const Game& game(size_t h, size_t g) const { return games_[h * stride_ + g]; }

  size_t n_weighting_;  // the first hypotheses, from which the weights are made
  size_t stride_;
  double threshold_;
  uint64_t tokens_ = 0;
  std::vector<EvidenceWindow> windows_;
  std::vector<std::vector<double>> weights_;  // [windows][tokens]
  std::vector<Game> games_;                   // [n_tests, n_tests]: row bets against column
  std::vector<size_t> excluded_after_;
};

}  // namespace fp8kv
