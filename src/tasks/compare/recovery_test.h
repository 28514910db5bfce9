// A sequential test of "this cache keeps at least so much of the baseline's accuracy".
//
// Each item bets against both answers: against "recovery >= bound" and against "recovery < bound".
// The test gives an answer once the bets against the other one have multiplied their stake by 20.
// Items must come in random order. Then at most 5 % of the caches that keep the bound are refused,
// and at most 5 % of the others accepted. This holds whenever the test stops (Ville's inequality).
// The bets are those of Waudby-Smith and Ramdas (2024), averaged over fixed stakes.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "tasks/compare/paired.h"

namespace fp8kv {

enum class Decision { open, accepted, refused };

class RecoveryTest {
 public:
  static constexpr double kConfidence = 0.95;

  // REQUIRES a bound above 0 and up to 1.
  explicit RecoveryTest(double bound);

  // Adds the next item. Does nothing once the test is decided.
  void add(bool right, bool baseline_right);

  double bound() const { return bound_; }
  Decision decision() const { return decision_; }
  uint64_t items() const { return items_; }  // items up to the decision, or all so far
  // Estimates how many items like `counts` would decide the test; 0: no number would.
  uint64_t items_to_decide(const PairedCounts& counts) const;

 private:
  static constexpr std::array<double, 5> kStakes = {0.05, 0.1, 0.2, 0.4, 0.8};
  using Logs = std::array<double, kStakes.size()>;

  void bet(double gain, Logs& logs) const;
  static double log_wealth(const Logs& logs);

  double bound_;
  Decision decision_ = Decision::open;
  uint64_t items_ = 0;
  Logs against_low_ = {};  // by stake: natural logarithm of the wealth it has become
  Logs against_high_ = {};
};

// Parses "recovery >= 99%" or "recovery >= 0.99", with blanks anywhere. Throws a usage Error that
// says what was expected.
struct Acceptance {
  std::string text;  // as the user wrote it
  double bound = 0;
};
Acceptance parse_acceptance(const std::string& text);

}  // namespace fp8kv
