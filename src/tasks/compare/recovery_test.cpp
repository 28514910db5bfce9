#include "tasks/compare/recovery_test.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace fp8kv {
namespace {

const double kDecides = std::log(1 / (1 - RecoveryTest::kConfidence));

}  // namespace

RecoveryTest::RecoveryTest(double bound) : bound_(bound) {
  FP8KV_ASSERT(bound > 0 && bound <= 1);
}

// The gain is right - bound * baseline_right. For recovery R its mean has the sign of R - bound. It
// lies between -1 and 1, so a stake below 1 never loses all its wealth.
void RecoveryTest::add(bool right, bool baseline_right) {
  if (decision_ != Decision::open) return;
  ++items_;
  const double gain = (right ? 1.0 : 0.0) - (baseline_right ? bound_ : 0.0);
  bet(gain, against_low_);
  bet(-gain, against_high_);
  if (log_wealth(against_high_) >= kDecides) {
    decision_ = Decision::refused;
  } else if (log_wealth(against_low_) >= kDecides) {
    decision_ = Decision::accepted;
  }
}

void RecoveryTest::bet(double gain, Logs& logs) const {
  for (size_t i = 0; i < kStakes.size(); ++i) logs[i] += std::log1p(kStakes[i] * gain);
}

// Returns the logarithm of the total wealth. Each stake began with an equal share of 1.
double RecoveryTest::log_wealth(const Logs& logs) {
  const double most = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (const double each : logs) sum += std::exp(each - most);
  return most + std::log(sum / static_cast<double>(kStakes.size()));
}

uint64_t RecoveryTest::items_to_decide(const PairedCounts& counts) const {
  const auto n = static_cast<double>(counts.items());
  double fastest = 0;
  for (const double stake : kStakes) {
    for (const double sign : {1.0, -1.0}) {
      const auto log_of = [&](double gain) { return std::log1p(sign * stake * gain); };
      const double sum = static_cast<double>(counts.both) * log_of(1 - bound_) +
                         static_cast<double>(counts.wins) * log_of(1) +
                         static_cast<double>(counts.losses) * log_of(-bound_);
      fastest = std::max(fastest, sum / n);
    }
  }
  if (!(fastest > 0)) return 0;
  const double needed = kDecides + std::log(static_cast<double>(kStakes.size()));
  return static_cast<uint64_t>(std::ceil(needed / fastest));
}

Acceptance parse_acceptance(const std::string& text) {
  std::string packed;
  for (const char c : text) {
    if (c != ' ' && c != '\t') packed += c;
  }
  const std::string begin = "recovery>=";
  double bound = 0;
  bool good = packed.starts_with(begin);
  if (good) {
    const bool percent = packed.ends_with('%');
    const char* first = packed.data() + begin.size();
    const char* last = packed.data() + packed.size() - (percent ? 1 : 0);
    const auto parsed = std::from_chars(first, last, bound);
    if (percent) bound /= 100;
    good = parsed.ec == std::errc() && parsed.ptr == last && bound > 0 && bound <= 1;
  }
  if (good) return {text, bound};
  throw Error(cat("is ", quote(text), ", expected recovery >= a share above 0 and up to 100%"),
              "write it as 'recovery >= 99%'", ErrorKind::usage);
}

}  // namespace fp8kv
