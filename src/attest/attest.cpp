#include "attest/attest.h"

#include <algorithm>

#include "base/error.h"

namespace fp8kv {
namespace {

// Windows that are computed together: a few at first, since few may be enough.
constexpr size_t kFirstRound = 4;
constexpr size_t kLargestRound = 16;

// Windows before an answer other than "undecided" is given.
constexpr size_t kLeastWindows = 8;

// A cache fits where it explains this share of the server's deviations. Measured: the right one
// explains about half (docs/serving.md), one with other scales nothing.
constexpr double kLeastExplained = 0.2;

// A 16-bit cache fits where the server deviates from it by less than this share of what FP8 does.
constexpr double kMostDeparture = 0.5;

// One attestation on its way.
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
    while (asked_.size() < options_.windows && !main_decided()) round(options_.windows);
    if (const auto base = base_of_layers()) {
      add_layers(*base);
      const size_t enough = std::min(options_.windows, 2 * windows());
      while (windows() < options_.windows && !layers_decided(enough)) round(options_.windows);
    }
    conclude();
    return std::move(report_);
  }

 private:
  size_t windows() const { return report_.evidence.windows().size(); }
  bool out(size_t h) const { return report_.evidence.is_excluded(h); }

  size_t n_missing() const {
    size_t most = 0;
    for (const Hypothesis& each : report_.hypotheses) {
      if (options_.layers && each.outcome == Outcome::these_scales) {
        most = std::max(most, missing_layers(each).size());
      }
    }
    return most;
  }

  // Asks about some more windows, computes them, and takes them up until all is decided.
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

  // Of the tokens asked about in the windows from `first` on.   [lanes][windows][tokens]
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

  // At most one outcome of the first `n` hypotheses is left.
  bool one_left(size_t n) const {
    std::optional<size_t> left;
    for (size_t h = 0; h < n; ++h) {
      if (out(h)) continue;
      if (left && !same_answer(*left, h)) return false;
      if (!left) left = h;
    }
    return true;
  }

  // What explains most of those not excluded, or of all.
  size_t best_explained(bool of_all) const {
    std::optional<size_t> best;
    for (size_t h = 0; h < report_.hypotheses.size(); ++h) {
      if (!of_all && out(h)) continue;
      if (!best || report_.evidence.explained(h) > report_.evidence.explained(*best)) best = h;
    }
    return best.value_or(0);
  }

  // How far the server is from a 16-bit cache, against the nearest FP8 cache.
  double departure() const {
    double most = 0;
    for (size_t h = 1; h < n_main_; ++h) most = std::max(most, report_.evidence.departure(h));
    return most;
  }

  bool explains(size_t h) const {
    if (h == 0) return departure() <= kMostDeparture;
    return report_.evidence.explained(h) >= kLeastExplained;
  }

  bool main_decided() const {
    if (windows() < kLeastWindows) return false;
    return one_left(n_main_) || !(explains(best_explained(false)) || explains(0));
  }

  // The cache whose layers are looked at one by one: these scales, with the rounding that fits
  // better, unless something else fits.
  std::optional<size_t> base_of_layers() const {
    const size_t left = best_explained(false);
    const Outcome found = report_.hypotheses[left].outcome;
    const bool other = found != Outcome::these_scales && explains(left) && one_left(n_main_);
    if (!options_.layers || other || windows() == 0) return std::nullopt;
    std::optional<size_t> base;
    for (size_t h = 0; h < n_main_; ++h) {
      if (report_.hypotheses[h].outcome != Outcome::these_scales) continue;
      if (!base || report_.evidence.explained(h) > report_.evidence.explained(*base)) base = h;
    }
    return base;
  }

  void add_layers(size_t base) {
    const std::vector<Hypothesis> missing = missing_layers(report_.hypotheses[base]);
    std::vector<size_t> lanes;
    for (const Hypothesis& each : missing) {
      lanes.push_back(report_.hypotheses.size());
      report_.hypotheses.push_back(each);
    }
    if (!lanes.empty()) report_.evidence.extend(predictions(lanes, 0));
    base_ = base;
  }

  // Every layer is settled, or those that are not make no difference that `enough` windows show.
  bool layers_decided(size_t enough) const {
    if (one_left(report_.hypotheses.size())) return true;
    return windows() >= enough && !out(base_) && best_explained(false) < n_main_;
  }

  void conclude() {
    Evidence& evidence = report_.evidence;
    report_.departs = departure() > kMostDeparture;
    report_.best = best_explained(false);
    const bool of_base = report_.hypotheses[report_.best].outcome == Outcome::these_scales;
    for (size_t h = 0; h < report_.hypotheses.size(); ++h) {
      const Hypothesis& each = report_.hypotheses[h];
      const bool layer = each.outcome == Outcome::layer_missing;
      if (layer && of_base) {
        (out(h) ? report_.seen_layers : report_.unseen_layers).push_back(each.layer);
      } else if (!out(h)) {
        report_.left.push_back(h);
      }
    }
    if (evidence.windows().size() < std::min(kLeastWindows, options_.windows)) return;
    if (!explains(report_.best)) {
      report_.best = best_explained(true);
      report_.verdict = explains(0) && !out(0) ? AttestVerdict::undecided : AttestVerdict::none;
      return;
    }
    const bool one = std::all_of(report_.left.begin(), report_.left.end(),
                                 [&](size_t h) { return same_answer(h, report_.best); });
    report_.verdict = one ? AttestVerdict::fits : AttestVerdict::undecided;
  }

  const AttestSides& sides_;
  AttestOptions options_;
  AttestReport report_;
  size_t n_main_ = 0;
  size_t base_ = 0;
  std::vector<AskedWindow> asked_;
};

}  // namespace

AttestReport attest(std::vector<Hypothesis> hypotheses, const AttestSides& sides,
                    const AttestOptions& options) {
  return Attestation(std::move(hypotheses), sides, options).run();
}

}  // namespace fp8kv
