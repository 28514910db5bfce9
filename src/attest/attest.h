// Finds out which cache a server computes with. Asks the server and the local model about the same
// texts, window by window, until all hypotheses but one are excluded. Knows no protocol and prints
// nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attest/evidence.h"
#include "attest/hypotheses.h"
#include "base/log.h"
#include "eval/multi_cache_run.h"

namespace fp8kv {

// A text, and the server's answer about its last `log_probs.size()` tokens.
struct AskedWindow {
  std::vector<int32_t> ids;
  std::vector<double> log_probs;
};

struct AttestOptions {
  double level = 0.01;  // probability of a wrong answer
  size_t windows = 0;   // at most
  bool layers = true;   // whether to test for one layer without scales
};

// The two sides of an attestation.
struct AttestSides {
  // Asks the server about a window. Windows are numbered from 0.
  std::function<AskedWindow(size_t window)> ask;
  // Predicts locally. See Predictor::log_probs.
  std::function<std::vector<std::vector<double>>(const std::vector<std::vector<int32_t>>& windows,
                                                 const std::vector<Lane>& lanes)>
      predict;
};

enum class AttestVerdict {
  fits,       // one outcome is left, and it explains the server's numbers
  none,       // none of the hypotheses explains them
  undecided,  // several are left
};

struct AttestReport {
  AttestVerdict verdict = AttestVerdict::undecided;
  size_t best = 0;  // the hypothesis that explains most
  std::vector<Hypothesis> hypotheses;
  std::vector<size_t> left;            // may be the server's, without layers of no difference
  std::vector<int64_t> seen_layers;    // layers whose scales show in the numbers
  std::vector<int64_t> unseen_layers;  // layers whose scales made no visible difference
  Evidence evidence = Evidence(1, 1, 0.5);
};

AttestReport attest(std::vector<Hypothesis> hypotheses, const AttestSides& sides,
                    const AttestOptions& options);

}  // namespace fp8kv
