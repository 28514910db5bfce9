#include "attest/attest.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace fp8kv {
namespace {

// Windows computed together. The first round is small, because few windows may be enough.
constexpr size_t kFirstRound = 4;
constexpr size_t kLargestRound = 16;

// The fewest windows before any answer except "undecided". "None of these" waits for more, if more
// are to be asked about.
constexpr size_t kLeastWindows = 8;
constexpr size_t kLeastForNone = 16;

// A cache fits if it explains this share of the server's deviations. In measurements the right
// cache explained 0.21 to 0.71 (docs/serving.md).
constexpr double kLeastExplained = 0.1;

// Two predictions closer than this cannot be told apart. The unit is the server's distance from the
// better one. Two computations of one cache are about 1 apart, because every difference in the last
// bits moves some codes: 0.069 a token where the server was 0.074 off (docs/serving.md). The rest
// is for chance in the 500 tokens of kLeastWindows.
constexpr double kLeastApart = 1.25;
// They can be told apart all the same if the odds against one exceed this: 10, as a logarithm.
constexpr double kLeastOdds = 2.3;

// The server's distance from these scales, relative to the distance between these scales and twice
// these, whose codes are nearly the same. Right scales had 1.17 to 1.26, and scales 1.4 times as
// large 1.77 or more (docs/serving.md).
constexpr double kMostMisfit = 1.5;

// The server's deviation from a 16-bit cache, relative to the least deviation of an FP8 cache. An
// FP8 server has more than 1, because its noise adds to its rounding. So 16 bit is ruled out above
// kFp8Departure, and fits below kMostDeparture. Measured were 0.23 and 0.50 for 16 bit, and 1.27 or
// more for FP8 (docs/serving.md).
constexpr double kMostDeparture = 0.75;
constexpr double kFp8Departure = 1;

// One attestation in progress.
class Attestation {
 public:
  Attestation(std::vector<Hypothesis> hypotheses, const AttestSides& sides,
              const AttestOptions& options)
      : sides_(sides), options_(options) {
    report_.hypotheses = std::move(hypotheses);
    n_main_ = report_.hypotheses.size();
    report_.evidence = Evidence(n_main_, n_main_ + n_missing(), options.level);
  }

  AttestReport run() {
    // Keeps half of the text for single layers: one missing layer may explain a server that no main
    // hypothesis fits.
    const size_t half = options_.layers ? std::max(kLeastWindows, options_.windows / 2) : SIZE_MAX;
    const size_t most = std::min(half, options_.windows);
    while (windows() < most && !main_decided()) round(most);
    const std::vector<size_t> bases = bases_of_layers();
    if (bases.empty()) {
      while (windows() < options_.windows && !main_decided()) round(options_.windows);
    } else {
      add_layers(bases);
      const size_t enough = std::min(options_.windows, 2 * windows());
      while (windows() < options_.windows && !layers_decided(enough)) round(options_.windows);
    }
    conclude();
    return std::move(report_);
  }

 private:
  size_t windows() const { return report_.evidence.windows().size(); }
  bool out(size_t h) const { return report_.evidence.is_excluded(h); }

  // The hypotheses with these scales, one for each rounding.
  std::vector<size_t> roundings() const {
    std::vector<size_t> found;
    for (size_t h = 0; h < n_main_; ++h) {
      const Hypothesis& each = report_.hypotheses[h];
      const bool plain = !each.cache.arithmetic.fp8_attention;
      if (each.outcome == Outcome::these_scales && plain) found.push_back(h);
    }
    return found;
  }
  size_t n_missing() const {
    size_t all = 0;
    for (const size_t h : roundings()) all += missing_layers(report_.hypotheses[h]).size();
    return options_.layers ? all : 0;
  }

  // Asks about more windows, computes them, and adds them to the evidence.
  void round(size_t most) {
    const size_t first = windows();
    const size_t wanted = std::clamp(first, kFirstRound, kLargestRound);
    while (asked_.size() < std::min(most, first + wanted))
      asked_.push_back(sides_.ask(asked_.size()));
    std::vector<size_t> lanes;
    for (size_t h = 0; h < report_.hypotheses.size(); ++h) {
      if (h == 0 || !out(h)) lanes.push_back(h);
    }
    const auto found = predictions(lanes, first);
    for (size_t w = first; w < asked_.size(); ++w) {
      EvidenceWindow window{asked_[w].log_probs, {}};
      window.predicted.resize(report_.hypotheses.size());
      for (size_t i = 0; i < lanes.size(); ++i) window.predicted[lanes[i]] = found[i][w - first];
      report_.evidence.add(std::move(window));
    }
  }

  // Predicts the asked tokens in the windows from `first` on.   [lanes][windows][tokens]
  std::vector<std::vector<std::vector<double>>> predictions(const std::vector<size_t>& lanes,
                                                            size_t first) {
    std::vector<std::vector<int32_t>> texts;
    for (size_t w = first; w < asked_.size(); ++w) texts.push_back(asked_[w].ids);
    std::vector<Lane> caches;
    for (const size_t h : lanes) {
      const Hypothesis& each = report_.hypotheses[h];
      caches.push_back({each.cache, each.scales ? &*each.scales : nullptr});
    }
    std::vector<std::vector<std::vector<double>>> found;
    for (const std::vector<double>& all : sides_.predict(texts, caches)) {
      auto& of_lane = found.emplace_back();
      size_t end = 0;
      for (size_t w = first; w < asked_.size(); ++w) {
        end += asked_[w].ids.size() - 1;
        const size_t n = asked_[w].log_probs.size();
        of_lane.emplace_back(all.begin() + static_cast<ptrdiff_t>(end - n),
                             all.begin() + static_cast<ptrdiff_t>(end));
      }
    }
    return found;
  }

  bool same_answer(size_t a, size_t b) const {
    return same_outcome(report_.hypotheses[a], report_.hypotheses[b]) ||
           report_.evidence.same_predictions(a, b);
  }

  // Whether `h` is all that is left of the first `n` hypotheses, apart from those that ordinary
  // text cannot tell from it.
  bool decided_for(size_t h, size_t n) const {
    if (is_near_a_misfit(h)) return false;
    for (size_t other = 0; other < n; ++other) {
      const bool settled =
          out(other) || misfits(other) || same_answer(other, h) || is_near(other, h);
      if (!settled) return false;
    }
    return true;
  }
  bool is_near(size_t h, size_t best) const {
    const Evidence& evidence = report_.evidence;
    return h != 0 && best != 0 && evidence.apart(h, best) < kLeastApart &&
           evidence.capital(best, h) < kLeastOdds;
  }

  // The plain cache with this outcome and rounding, unless it was excluded.
  std::optional<size_t> plain_cache(Outcome outcome, bool toward_zero) const {
    for (size_t h = 0; h < n_main_; ++h) {
      const Hypothesis& each = report_.hypotheses[h];
      const CacheArithmetic& kernel = each.cache.arithmetic;
      const bool found = each.outcome == outcome && kernel.toward_zero == toward_zero;
      if (found && !kernel.fp8_attention && !out(h)) return h;
    }
    return std::nullopt;
  }

  // Whether `h` is these scales, or twice these, and farther from the server than two computations
  // of one cache are. No bet excludes it where all other caches are as far off.
  bool misfits(size_t h) const {
    const Hypothesis& each = report_.hypotheses[h];
    if (each.outcome != Outcome::these_scales && each.outcome != Outcome::doubled) return false;
    const bool toward_zero = each.cache.arithmetic.toward_zero;
    const auto these = plain_cache(Outcome::these_scales, toward_zero);
    const auto doubled = plain_cache(Outcome::doubled, toward_zero);
    return these && doubled && report_.evidence.misfit(h, *these, *doubled) > kMostMisfit;
  }

  // The hypothesis that explains most, among all or among those that may be the server's.
  size_t best_explained(bool of_all) const {
    std::optional<size_t> best;
    for (size_t h = 0; h < report_.hypotheses.size(); ++h) {
      if (!of_all && (out(h) || misfits(h))) continue;
      if (!best || report_.evidence.explained(h) > report_.evidence.explained(*best)) best = h;
    }
    return best.value_or(0);
  }

  // See kFp8Departure.
  double departure() const {
    double most = 0;
    for (size_t h = 1; h < n_main_; ++h) most = std::max(most, report_.evidence.departure(h));
    return most;
  }

  bool explains(size_t h) const {
    if (h == 0) return departure() <= kMostDeparture;
    return report_.evidence.explained(h) >= kLeastExplained;
  }

  // Whether `h` fits no better than scales that do not fit.
  bool is_near_a_misfit(size_t h) const {
    if (report_.hypotheses[h].outcome == Outcome::layer_missing) return false;
    for (size_t other = 0; other < n_main_; ++other) {
      if (!out(other) && misfits(other) && is_near(other, h)) return true;
    }
    return false;
  }

  bool main_decided() const {
    if (windows() < kLeastWindows) return false;
    const size_t best = best_explained(false);
    if (explains(best)) return decided_for(best, n_main_);
    return windows() >= kLeastForNone && departure() > kFp8Departure;
  }

  // Returns these scales if they are not excluded and cannot be told from `h`; else returns `h`.
  size_t named_for(size_t h) const {
    for (size_t these = 0; these < n_main_; ++these) {
      const bool like = report_.hypotheses[these].outcome == Outcome::these_scales && !out(these) &&
                        !misfits(these) &&
                        (is_near(these, h) || report_.evidence.same_predictions(these, h));
      if (like) return these;
    }
    return h;
  }
  bool like_these(size_t h) const {
    return report_.hypotheses[named_for(h)].outcome == Outcome::these_scales;
  }

  // The caches whose layers are tested one by one: these scales with the rounding that is left, or
  // with every rounding if that is undecided. None if a 16-bit cache fits.
  std::vector<size_t> bases_of_layers() const {
    const size_t left = best_explained(false);
    if (!options_.layers || windows() == 0 || (left == 0 && explains(0))) return {};
    std::vector<size_t> bases = roundings();
    if (!explains(left) || !decided_for(left, n_main_)) return bases;
    std::erase_if(bases, [&](size_t h) {
      return report_.hypotheses[h].cache.arithmetic.toward_zero !=
             report_.hypotheses[left].cache.arithmetic.toward_zero;
    });
    return bases;
  }

  void add_layers(const std::vector<size_t>& bases) {
    std::vector<size_t> lanes;
    for (const size_t base : bases) {
      for (Hypothesis& each : missing_layers(report_.hypotheses[base])) {
        lanes.push_back(report_.hypotheses.size());
        report_.hypotheses.push_back(std::move(each));
      }
    }
    if (!lanes.empty()) report_.evidence.extend(predictions(lanes, 0));
  }

  // Whether every layer is settled, or these scales are left and `enough` windows showed nothing
  // else.
  bool layers_decided(size_t enough) const {
    const size_t best = best_explained(false);
    if (!explains(best) || decided_for(best, report_.hypotheses.size())) return true;
    return windows() >= enough && like_these(best);
  }

  // Fills in the lists of what is left. If `found` has these scales, layers get lists of their own.
  void list_left(size_t found) {
    const bool of_these = report_.hypotheses[found].outcome == Outcome::these_scales;
    std::map<int64_t, bool> seen;  // whether each layer's hypotheses are all excluded
    for (size_t h = 0; h < report_.hypotheses.size(); ++h) {
      const Hypothesis& each = report_.hypotheses[h];
      if (each.outcome == Outcome::layer_missing && of_these) {
        const auto at = seen.emplace(each.layer, true).first;
        at->second = at->second && out(h);
      } else if (!out(h) && !misfits(h)) {
        report_.left.push_back(h);
      }
    }
    for (const auto& [layer, is_seen] : seen) {
      (is_seen ? report_.seen_layers : report_.unseen_layers).push_back(layer);
    }
  }

  void conclude() {
    const size_t best = best_explained(false);
    report_.best = named_for(best);
    list_left(report_.best);
    if (windows() < std::min(kLeastWindows, options_.windows)) return;
    if (!explains(best) || is_near_a_misfit(best)) {
      report_.best = best_explained(true);
      const bool may_be_16_bit = !out(0) && departure() <= kFp8Departure;
      report_.verdict = may_be_16_bit ? AttestVerdict::undecided : AttestVerdict::none;
      return;
    }
    const bool decided = std::all_of(report_.left.begin(), report_.left.end(), [&](size_t h) {
      return same_answer(h, report_.best) || is_near(h, best);
    });
    report_.verdict = decided ? AttestVerdict::fits : AttestVerdict::undecided;
  }

  const AttestSides& sides_;
  AttestOptions options_;
  AttestReport report_;
  size_t n_main_ = 0;
  std::vector<AskedWindow> asked_;
};

}  // namespace

AttestReport attest(std::vector<Hypothesis> hypotheses, const AttestSides& sides,
                    const AttestOptions& options) {
  return Attestation(std::move(hypotheses), sides, options).run();
}

}  // namespace fp8kv
