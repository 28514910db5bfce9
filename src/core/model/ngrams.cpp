#include "core/model/ngrams.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace fp8kv {
namespace {

bool is_prime(int64_t n) {
  if (n < 4) return n > 1;
  if (n % 2 == 0) return false;
  for (int64_t divisor = 3; divisor * divisor <= n; divisor += 2) {
    if (n % divisor == 0) return false;
  }
  return true;
}

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;

// One step of the generator SplitMix64.
uint64_t split_mix(uint64_t state) {
  state += kGolden;
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EB;
  return state ^ (state >> 31);
}

// Odd factors, small enough that no product with a token overflows.
std::vector<int64_t> factors_of(const NgramConfig& config, int64_t number) {
  constexpr uint64_t kSeedStep = 10007;
  const auto largest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max() /
                                             std::max<int64_t>(config.vocab_size, 1));
  const uint64_t bound = std::max<uint64_t>(1, largest / 2);
  const uint64_t seed =
      static_cast<uint64_t>(config.seed) + kSeedStep * static_cast<uint64_t>(number);
  std::vector<int64_t> factors;
  for (int64_t i = 0; i < config.longest; ++i) {
    const uint64_t drawn = split_mix(seed + kGolden * static_cast<uint64_t>(i + 1));
    factors.push_back(static_cast<int64_t>(2 * (drawn % bound) + 1));
  }
  return factors;
}

}  // namespace

bool NgramConfig::has(int64_t layer) const {
  return std::binary_search(layers.begin(), layers.end(), layer);
}

int64_t NgramConfig::rows_of(int64_t layer) const {
  FP8KV_ASSERT(has(layer));
  return rows[static_cast<size_t>(std::lower_bound(layers.begin(), layers.end(), layer) -
                                  layers.begin())];
}

NgramTables::NgramTables(const NgramConfig& config, int64_t layer) : config_(config) {
  FP8KV_ASSERT(config.has(layer));
  const auto found = std::lower_bound(config.layers.begin(), config.layers.end(), layer);
  const int64_t number = found - config.layers.begin();
  factors_ = factors_of(config, number);
  int64_t prime = config.least_rows - 1;
  for (int64_t i = 0; i < (number + 1) * config.tables(); ++i) {
    do {
      ++prime;
    } while (!is_prime(prime));
    if (i < number * config.tables()) continue;
    sizes_.push_back(prime);
    begins_.push_back(rows_);
    rows_ += prime;
  }
  rows_ = (rows_ + config.multiple - 1) / config.multiple * config.multiple;
}

void NgramTables::add_rows(std::span<const int32_t> newest_first, std::vector<int64_t>& out) const {
  bool open = true;  // no gap has come yet
  int64_t hash = 0;
  for (int64_t i = 0; i < config_.longest; ++i) {
    const auto at = static_cast<size_t>(i);
    int32_t id = config_.gap;
    if (open && at < newest_first.size()) id = newest_first[at];
    if (i > 0 && id == config_.gap) open = false;
    hash ^= id * factors_[at];
    for (int64_t head = 0; i > 0 && head < config_.heads; ++head) {
      const auto table = static_cast<size_t>((i - 1) * config_.heads + head);
      out.push_back(begins_[table] + hash % sizes_[table]);
    }
  }
}

}  // namespace fp8kv
