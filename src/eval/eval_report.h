// What an evaluation found, as plain numbers: made by eval/evaluate.h, shown by whoever wants to
// (tables, JSON, gates, pages). Nothing here computes or formats.
// Shares and relative errors are fractions (0.01 is 1 %); logarithms are natural.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/cache_type.h"
#include "core/config.h"
#include "core/scales.h"
#include "policy/magnitudes.h"

namespace fp8kv {

// What predicting a set of tokens with one cache costs, against the baseline cache on the same
// tokens. Standard errors take parts of the text as independent, not tokens
// (eval/standard_errors.h).
struct TokenFigures {
  // Tokens that the prediction could see: [first_depth, end_depth). The figures of everything have
  // 0 and the longest window.
  int64_t first_depth = 0;
  int64_t end_depth = 0;
  uint64_t tokens = 0;  // predictions
  double nll = 0;       // mean negative log likelihood; perplexity is exp of it
  double nll_error = 0;
  double perplexity = 1;
  double perplexity_error = 0;
  double ppl_delta = 0;        // perplexity / that of the baseline - 1
  double ppl_delta_error = 0;  // from the differences token by token, so far below perplexity_error
  double kld = 0;              // mean of KL(baseline || this) over the whole vocabulary
  double kld_error = 0;
  double kld_p999 = 0;  // 99.9th percentile, interpolated linearly between ranks
  double kld_max = 0;
  double top1 = 1;  // share of tokens where the likeliest token is that of the baseline
};

// Sums over one part of the text.
struct PartSums {
  uint64_t tokens = 0;  // predictions
  double kld = 0;
};

// What a cache makes of one layer's K or V, against the values that the model computes.
struct CacheErrors {
  double relative_error = 0;         // sqrt(sum (x - cached x)^2 / sum x^2)
  std::vector<double> head_errors;   // the same of each KV head
  uint64_t values = 0;               // all values of the tensor; the counts below are among them
  uint64_t saturated = 0;            // beyond the format's largest at this scale
  uint64_t subnormal = 0;            // in the format's subnormals, where precision falls off
  uint64_t zero = 0;                 // not zero before, zero in the cache
  uint64_t nonfinite_unclamped = 0;  // NaN or infinity where a runtime converts without clamping
};

// Measured on the baseline's Q, K and V, so that the errors of earlier layers play no part.
struct LayerErrors {
  CacheErrors k, v;
  // sqrt(sum |o - o'|^2 / sum |o|^2) of the attention output o: the figure to trust. Over
  // EvalReport::attention_tokens.
  double attention_error = 0;

  // False of layers that write no cache of their own: nothing is measured there.
  bool has_cache() const { return !k.head_errors.empty(); }
};

// Greedy text: how many tokens of the baseline's continuation of each prompt the cache reproduces
// before its likeliest token is another one. Not sampled and not teacher-forced beyond that point:
// up to it both texts are the same.
struct GreedyFigures {
  std::vector<int64_t> agreed;  // [prompts]
  std::vector<int64_t> length;  // [prompts]: of the baseline's continuation; agreed when equal
};

// One cache: a dtype with the scales of a policy.
struct CandidateReport {
  std::string name;        // "fp8_e4m3 amax*2": unique in a report
  std::string dtype_name;  // "fp8_e4m3"
  std::string policy;      // "amax*2", "unit", "kv_cache_scales.json"; "" for 16 and 32 bit
  CacheType dtype;
  std::vector<int64_t> skipped;  // layers left in the model's own dtype, rising
  CacheArithmetic arithmetic = {};
  std::optional<KvScales> scales;  // in the format of dtype; absent: 1 everywhere, or no FP8
  uint64_t bytes_per_token = 0;    // of the cache, all layers
  TokenFigures total;
  std::vector<PartSums> parts;       // of the whole text, the same parts for every candidate
  std::vector<TokenFigures> depths;  // by first_depth; those without tokens are left out
  std::vector<LayerErrors> layers;   // [n_layers]
  GreedyFigures greedy;

  // A variant is the cache as another kernel computes with it. No advice is given about one.
  bool is_variant() const { return arithmetic != CacheArithmetic(); }
};

// Where the scales of policies come from.
struct CalibrationReport {
  bool same_data = false;  // calibrated on the very text that is evaluated
  std::vector<DataFile> data;
  uint64_t windows = 0;
  uint64_t tokens = 0;
  std::vector<AmaxAfter> convergence;  // 1/8, 1/4, 1/2 and all of the data; the last is the result
};

struct EvalReport {
  // Provenance.
  std::string tool_version;
  std::string date;              // "2026-11-22", of UTC; "": not told
  std::string model;             // folder, as given
  std::string calibration_text;  // the files that policies read, as words of a shell; "": not told
  std::string scales_file;       // that the advised scales were written to; "": none
  std::string against;           // the model that the figures are against; "": itself
  std::string fingerprint;       // see core/model_identity.h
  std::string accepted_foreign;  // in what the model differs from the one the scales were made for
  std::string device;            // "cpu: AVX-512 BF16, 4 threads"
  ModelConfig config;
  std::vector<DataFile> data;
  uint64_t documents = 0;
  uint64_t windows = 0;
  uint64_t tokens = 0;                           // in all windows
  int64_t longest_window = 0;                    // tokens
  uint64_t attention_tokens = 0;                 // those whose attention output was measured
  std::optional<CalibrationReport> calibration;  // absent: no candidate has a policy's scales

  // What Q, K and V reach in the evaluated text, with histograms.   [n_layers]
  std::vector<LayerMagnitudes> magnitudes;
  // After the first half of its windows; empty with a single window.
  AmaxAfter half;
  // The cache that the others are compared with: its own errors, deltas and divergences are 0.
  CandidateReport baseline;
  std::vector<CandidateReport> candidates;
};

}  // namespace fp8kv
