// Compares two caches on the same items: which one is right where the other is wrong.
#pragma once

#include <cstdint>

namespace fp8kv {

struct PairedCounts {
  uint64_t both = 0;    // right with both caches
  uint64_t wins = 0;    // right with this cache alone
  uint64_t losses = 0;  // right with the baseline alone
  uint64_t none = 0;    // wrong with both

  void add(bool right, bool baseline_right);
  uint64_t items() const { return both + wins + losses + none; }
  uint64_t ties() const { return both + none; }
  uint64_t right() const { return both + wins; }
  uint64_t baseline_right() const { return both + losses; }
};

// The standard error of the share right / items; 0 for fewer than two items.
double share_error(uint64_t right, uint64_t items);

// The two-sided exact p value of McNemar's test. Toss a fair coin for each item that only one cache
// got right: p is how often the split would be at least as uneven as wins and losses.
double mcnemar_p(uint64_t wins, uint64_t losses);

// Recovery is this cache's share of right answers over the baseline's.
struct Recovery {
  double value = 1;
  double low = 0;   // `low` and `high` bound a two-sided interval of 95 %
  double high = 0;  // infinity if the baseline may have no item right
};

// Computes the interval for a ratio of paired shares by Bonett and Price (2006), from two Wilson
// intervals. REQUIRES that the baseline has an item right.
Recovery recovery_of(const PairedCounts& counts);

}  // namespace fp8kv
