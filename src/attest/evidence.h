// Which of several predictions a server's numbers fit: a sequential test that may stop at any time.
//
// Every pair of hypotheses plays a game. In each block of 16 tokens hypothesis h bets against g,
// and wins or loses by how much closer the server is to h than to g:
//
//   x = (sum |server - g| - sum |server - h|) / sum |h - g|, which is from -1 to 1,
//
// where each token is divided by how far the caches move it. The one assumption: if the server
// computes with g, its distance from g is noise that favours no other hypothesis, so x is 0 or less
// on average, whatever came before. The capital of h, product (1 + bet x), then passes C with
// probability 1 / C at most, at any time (Ville's inequality). So g is excluded once a capital
// against it reaches n_tests / level: the truth is excluded with probability `level` at most. The
// noise may have any distribution, and tokens may depend on each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fp8kv {

// Log probabilities of one window's tokens.
struct EvidenceWindow {
  std::vector<double> server;
  std::vector<std::vector<double>> predicted;  // [hypotheses]; none for those not computed
};

class Evidence {
 public:
  // `n_tests`: the hypotheses that there will ever be. Hypothesis 0 is the one that the others'
  // effects are measured from.
  Evidence(size_t n_hypotheses, size_t n_tests, double level);

  // REQUIRES predictions of hypothesis 0.
  void add(EvidenceWindow window);

  // Further hypotheses, with their predictions of all windows so far.   [new ones][windows]
  void extend(const std::vector<std::vector<std::vector<double>>>& predicted);

  size_t size() const { return excluded_after_.size(); }
  const std::vector<EvidenceWindow>& windows() const { return windows_; }
  uint64_t tokens() const { return tokens_; }

  // Windows after which `g` was excluded; 0: it is not.
  size_t excluded_after(size_t g) const { return excluded_after_[g]; }
  bool is_excluded(size_t g) const { return excluded_after_[g] > 0; }
  // Both predicted the same numbers in every window.
  bool same_predictions(size_t h, size_t g) const;

  // The largest logarithm of a capital against `g`, of those that count.
  double against(size_t g) const;
  // A capital's logarithm has to reach this.
  double threshold() const { return threshold_; }

  // Mean |server - predicted| over the windows that `h` was computed for.
  double residual(size_t h) const;
  // Mean |predicted - that of hypothesis 0|, over the same windows.
  double effect(size_t h) const;
  // How far two predictions are from each other, as a share of how far the server is from `g`:
  // well below 1, no text of ordinary length tells them apart.
  double apart(size_t h, size_t g) const;
  // Share of the server's deviations from hypothesis 0 that `h` explains: 1 is all, 0 or less
  // nothing. Deviations are weighted as in the test, over the windows that `h` was computed for.
  double explained(size_t h) const;
  // How far the server is from hypothesis 0, as a share of how far `h` is: 0 to about 1.
  double departure(size_t h) const;

 private:
  static constexpr size_t kBets = 7;
  // One hypothesis bets against another.
  struct Game {
    std::array<double, kBets> log_capital{};
    double best = 0;  // logarithm of the mean capital, at its largest
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

  size_t n_weighting_;  // hypotheses that weights are made from: the first ones
  size_t stride_;
  double threshold_;
  uint64_t tokens_ = 0;
  std::vector<EvidenceWindow> windows_;
  std::vector<std::vector<double>> weights_;  // [windows][tokens]
  std::vector<Game> games_;                   // [n_tests, n_tests]: row against column
  std::vector<size_t> excluded_after_;
};

}  // namespace fp8kv
