// The result of an evaluation as plain numbers. eval/evaluate.h makes it; tables, JSON, gates and
// pages show it. Nothing here computes or formats.
// Shares and relative errors are fractions (0.01 is 1 %); logarithms are natural.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/cache/cache_type.h"
#include "core/model/config.h"
#include "core/scales/copy_fate.h"
#include "core/scales/scales.h"
#include "policy/magnitudes.h"

namespace fp8kv {

// The first tokens of a window act as attention sinks: most heads attend to them.
inline constexpr int64_t kFirstTokens = 16;

// The cost of one cache on a set of predicted tokens, against the baseline cache on the same
// tokens. Standard errors treat parts of the text as independent, not tokens
// (eval/standard_errors.h).
struct TokenFigures {
  // The range of depths, [first_depth, end_depth): tokens before the predicted one. The total
  // covers 0 to the longest window.
  int64_t first_depth = 0;
  int64_t end_depth = 0;
  uint64_t tokens = 0;  // predictions
  double nll = 0;       // mean negative log likelihood; perplexity is its exp
  double nll_error = 0;
  double perplexity = 1;
  double perplexity_error = 0;
  double ppl_delta = 0;        // perplexity / perplexity of the baseline - 1
  double ppl_delta_error = 0;  // from differences per token, so far below perplexity_error
  double kld = 0;              // mean of KL(baseline || this) over the whole vocabulary
  double kld_error = 0;
  double kld_p999 = 0;  // 99.9th percentile, interpolated linearly between ranks
  double kld_max = 0;
  double top1 = 1;  // share of tokens whose likeliest token equals the baseline's
  // The places at which `kld` arises: its mean over predictions of the first kFirstTokens tokens of
  // a window, and over those of later tokens. 0 without such predictions.
  uint64_t first_tokens = 0;  // predictions of first tokens
  double first_kld = 0;
  double first_kld_error = 0;
  double later_kld = 0;
  double later_kld_error = 0;
  double heavy_share = 0;  // of the divergence, in the 1 % of predictions (at least 1) with most
};

// Sums over one part of the text.
struct PartSums {
  uint64_t tokens = 0;  // predictions
  double kld = 0;
};

// The errors of a cache in one layer's K or V, against the values that the model computes.
struct CacheErrors {
  double relative_error = 0;         // sqrt(sum (x - cached x)^2 / sum x^2)
  std::vector<double> head_errors;   // the relative error of each KV head
  uint64_t values = 0;               // all values of the tensor, those counted below included
  uint64_t saturated = 0;            // beyond the format's largest at this scale
  uint64_t subnormal = 0;            // in the format's subnormals, where precision falls off
  uint64_t zero = 0;                 // nonzero values that are zero in the cache
  uint64_t nonfinite_unclamped = 0;  // NaN or infinite if a runtime converts without clamping
};

// The errors of one layer. Measured on the baseline's Q, K and V, so earlier layers add no errors.
struct LayerErrors {
  CacheErrors k, v;
  // sqrt(sum |o - o'|^2 / sum |o|^2) of the attention output o, over EvalReport::attention_tokens.
  // This is the figure to trust.
  double attention_error = 0;

  // False for layers that write no cache of their own, where nothing is measured.
  bool has_cache() const { return !k.head_errors.empty(); }
};

// Greedy text: how many tokens of the baseline's continuation the cache reproduces for each prompt,
// until its likeliest token differs. No sampling. Up to that point both texts are the same, so
// nothing is teacher-forced.
struct GreedyFigures {
  std::vector<int64_t> agreed;  // [prompts]
  std::vector<int64_t> length;  // [prompts]: the baseline's tokens; `agreed` if equal
};

// The largest K and V of a layer in the first token of a window, and in all later ones; 0 if the
// layer writes no cache.
struct FirstTokenAmax {
  float k_first = 0, k_later = 0;
  float v_first = 0, v_later = 0;
};

// One candidate cache: a dtype with the scales of a policy.
struct CandidateReport {
  std::string name;        // "fp8_e4m3 amax*2": unique in a report
  std::string dtype_name;  // "fp8_e4m3"
  std::string policy;      // "amax*2", "unit", "kv_cache_scales.json"; "" for 16 and 32 bit
  CacheType dtype;
  std::vector<int64_t> skipped;  // layers left in the model's own dtype, ascending
  CacheArithmetic arithmetic = {};
  std::optional<KvScales> scales;  // in the format of dtype; absent: 1 everywhere, or no FP8
  uint64_t bytes_per_token = 0;    // in the cache, all layers together
  TokenFigures total;
  std::vector<PartSums> parts;       // the parts of the whole text, equal for every candidate
  std::vector<TokenFigures> depths;  // by first_depth; ranges without tokens are left out
  std::vector<LayerErrors> layers;   // [n_layers]
  GreedyFigures greedy;

  // A variant is the same cache with another kernel's arithmetic. Variants get no advice.
  bool is_variant() const { return arithmetic != CacheArithmetic(); }
};

// A greedy text of the advised cache that parts from the baseline's.
struct PartedText {
  std::string prompt;
  std::string baseline, other;
  size_t token = 0;  // the first different token, from 1
};

// The source of the policies' scales.
struct CalibrationReport {
  bool same_data = false;  // calibrated on the very text that is evaluated
  std::vector<DataFile> data;
  uint64_t windows = 0;
  uint64_t tokens = 0;
  std::vector<AmaxAfter> convergence;  // at 1/8, 1/4, 1/2 and all of the data, in this order
};

struct EvalReport {
  // Provenance of the report.
  std::string tool_version;
  std::string date;              // "2026-11-22" in UTC; "": not recorded
  std::string model;             // folder, as given
  std::string calibration_text;  // the policies' files, quoted for a shell; "": not recorded
  std::string scales_file;       // the file with the advised scales; "": none
  CopyFate vllm;                 // what it does with scales of this model
  std::string against;           // the model that the figures compare with; "": itself
  std::string fingerprint;       // see core/model/model_identity.h
  std::string accepted_foreign;  // how the model differs from the one the scales were made for
  std::string device;            // "cpu: AVX-512 BF16, 4 threads"
  ModelConfig config;
  std::vector<DataFile> data;
  uint64_t documents = 0;
  uint64_t windows = 0;
  uint64_t tokens = 0;                           // in all windows
  int64_t longest_window = 0;                    // tokens
  uint64_t attention_tokens = 0;                 // tokens whose attention output was measured
  std::optional<CalibrationReport> calibration;  // absent: no candidate has a policy's scales

  // The magnitudes of Q, K and V in the evaluated text, with histograms.   [n_layers]
  std::vector<LayerMagnitudes> magnitudes;
  // The maxima after the first half of the windows; empty with a single window.
  AmaxAfter half;
  std::vector<FirstTokenAmax> first_tokens;  // in the evaluated text   [n_layers]
  // The cache that all others are compared with. Its own errors, deltas and divergences are 0.
  CandidateReport baseline;
  std::vector<CandidateReport> candidates;
  std::vector<PartedText> texts;  // of the advised cache; empty if they were not made
};

}  // namespace fp8kv
