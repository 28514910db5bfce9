#include "support/sample_report.h"

#include <cmath>
#include <limits>

#include "base/text.h"
#include "policy/make_scales.h"
#include "report/pages/html_report.h"
#include "report/pages/scales_html.h"
#include "support/sample_tasks.h"

namespace fp8kv::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TokenFigures figures(int64_t first, int64_t end, double delta) {
  TokenFigures of;
  of.first_depth = first;
  of.end_depth = end;
  of.tokens = 1000;
  of.nll = 1.5 + delta;
  of.nll_error = 0.02;
  of.perplexity = std::exp(of.nll);
  of.perplexity_error = 0.09;
  of.ppl_delta = std::expm1(delta);
  of.ppl_delta_error = 0.0004;
  of.kld = delta;
  of.kld_error = delta / 8;
  of.kld_p999 = 20 * delta;
  of.kld_max = 50 * delta;
  of.top1 = 1 - std::min(1.0, delta);
  return of;
}

CacheErrors cache_errors_of(double error, int64_t heads) {
  CacheErrors of;
  of.relative_error = error;
  of.head_errors.assign(static_cast<size_t>(heads), error);
  of.values = 10000;
  of.saturated = 3;
  of.subnormal = 50;
  of.zero = 7;
  of.nonfinite_unclamped = 1;
  return of;
}

CandidateReport candidate_of(const SampleShape& shape, int64_t index, const EvalReport& report) {
  CandidateReport of;
  const bool unit = index == 1;
  of.dtype = DType::f8_e4m3;
  of.dtype_name = "fp8_e4m3";
  of.policy = cat(unit ? "unit" : "amax", index > 1 ? cat("*", index) : "", shape.name);
  of.name = cat(of.dtype_name, " ", of.policy);
  of.bytes_per_token = 1024;
  const double delta = unit ? 0.8 : 0.001 * static_cast<double>(index + 1);
  of.total = figures(0, 2048, delta);
  // Half of a part's divergence depends on the text alone. So paired differences vary less than
  // each candidate's errors.
  for (int part = 0; part < 16; ++part) {
    const double text = part % 2 == 0 ? 0.75 : 1.25;
    of.parts.push_back({62, 62 * delta * text});
  }
  for (int64_t i = 0, end = 512; i < shape.depths; ++i, end *= 4) {
    of.depths.push_back(figures(i == 0 ? 0 : end / 4, end, delta * static_cast<double>(i + 1)));
  }
  of.greedy = {{64, unit ? 0 : 12}, {64, 64}};
  if (!unit) of.scales.emplace();
  for (size_t i = 0; i < report.magnitudes.size(); ++i) {
    const double error = 0.03 + 0.01 * static_cast<double>(index) + 0.001 * static_cast<double>(i);
    of.layers.push_back({cache_errors_of(error, shape.heads),
                         cache_errors_of(error * 1.5, shape.heads), error * 2});
    if (of.scales) {
      const LayerAmax amax = layer_amax(report.magnitudes[i]);
      of.scales->layers.push_back({{amax.k[0] / 448}, {amax.v[0] / 448}});
    }
  }
  return of;
}

MagnitudeCounts counts_of(float amax) {
  MagnitudeCounts counts;
  counts.amax = amax;
  counts.bins.resize(kMagnitudeBins);
  for (int octave = 0; octave < 8; ++octave) {
    const float value = std::ldexp(amax, -octave);
    counts.bins[static_cast<size_t>(magnitude_bin(float_bits(value)))] += 100;
  }
  return counts;
}

// Turns a layer into one that keeps a state instead of a cache.
void take_cache(size_t layer, EvalReport& report) {
  report.config.layers[layer].cache_of = -1;
  report.magnitudes[layer] = {};
  for (AmaxAfter& part : report.calibration->convergence) part.layers[layer] = {};
  const auto take = [&](CandidateReport& of) {
    of.layers[layer] = {};
    if (of.scales) of.scales->layers[layer] = {};
  };
  take(report.baseline);
  for (CandidateReport& each : report.candidates) take(each);
}

void break_numbers(EvalReport& report) {
  CandidateReport& nan = report.candidates[0];
  nan.total = figures(0, 2048, kNan);
  for (TokenFigures& each : nan.depths) each = figures(each.first_depth, each.end_depth, kNan);
  nan.layers[0].attention_error = kNan;
  nan.layers[1].attention_error = kInfinity;
  nan.layers[0].k.relative_error = kNan;
  CandidateReport& huge = report.candidates[1];
  huge.total.ppl_delta = 1e300;
  huge.total.perplexity = kInfinity;
  huge.total.ppl_delta_error = kInfinity;
  huge.layers[0].v.relative_error = 1e30;
  huge.depths[0].kld = 1e-300;
}

}  // namespace

std::string hostile_name() {
  return "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;\x01\x1b[2J\xff"
         "\xe2\x80\xae"
         "rtl\xd7\x90</title></style>" +
         std::string(300, 'w');
}

LayerMagnitudes sample_magnitudes(float k, float v, int64_t heads) {
  const auto n = static_cast<size_t>(heads);
  return {std::vector(n, counts_of(1)), std::vector(n, counts_of(k)), std::vector(n, counts_of(v))};
}

EvalReport sample_report(const SampleShape& shape) {
  EvalReport report;
  report.tool_version = "1.2.3" + shape.name;
  report.model = "models/sample" + shape.name;
  report.fingerprint = "kv-proj-v1:1234" + shape.name;
  report.device = "cpu: AVX2, 2 threads" + shape.name;
  report.config.architecture = "LlamaForCausalLM" + shape.name;
  report.config.model_type = "llama" + shape.name;
  report.config.n_heads = 2 * shape.heads;
  for (int64_t i = 0; i < shape.layers; ++i) {
    report.config.layers.push_back({Mixing::full, 0, shape.heads, 64, 64, i});
  }
  report.data = {{"text.txt" + shape.name, 4096, "abcd" + shape.name}};
  report.documents = 3;
  report.windows = 4;
  report.tokens = report.attention_tokens = 8192;
  report.longest_window = 2048;
  for (int64_t i = 0; i < shape.layers; ++i) {
    const auto step = static_cast<float>(i);
    report.magnitudes.push_back(
        sample_magnitudes(1000 / (1 + step * step), 0.01f * (1 + step), shape.heads));
  }
  CalibrationReport calibration;
  calibration.data = {{"other.txt" + shape.name, 1024, "ef01" + shape.name}};
  calibration.windows = 2;
  calibration.tokens = 4096;
  for (const float part : {0.5f, 0.8f, 1.0f}) {
    AmaxAfter after{static_cast<uint64_t>(part * 4096), {}};
    for (const LayerMagnitudes& layer : report.magnitudes) {
      LayerAmax amax = layer_amax(layer);
      for (float& each : amax.k) each *= part;
      for (float& each : amax.v) each *= part;
      after.layers.push_back(amax);
    }
    calibration.convergence.push_back(after);
  }
  report.calibration = calibration;
  report.baseline = candidate_of(shape, 0, report);
  report.baseline.dtype = DType::f16;
  report.baseline.name = report.baseline.dtype_name = "float16";
  report.baseline.policy = "";
  report.baseline.scales.reset();
  report.baseline.bytes_per_token = 2048;
  for (int64_t i = 0; i < shape.candidates; ++i) {
    report.candidates.push_back(candidate_of(shape, i, report));
  }
  return report;
}

EvalReport sample_hybrid() {
  EvalReport hybrid = sample_report({.layers = 4, .candidates = 2, .name = ""});
  for (const size_t layer : {0, 2}) take_cache(layer, hybrid);
  return hybrid;
}

std::vector<std::pair<std::string, EvalReport>> sample_reports() {
  std::vector<std::pair<std::string, EvalReport>> samples;
  const auto add = [&](const char* name, EvalReport report) {
    samples.emplace_back(name, std::move(report));
  };
  add("plain", sample_report({.layers = 6, .name = ""}));
  add("one", sample_report({.layers = 1, .heads = 1, .candidates = 1, .depths = 1, .name = ""}));
  add("many",
      sample_report({.layers = 128, .heads = 32, .candidates = 8, .depths = 6, .name = ""}));
  EvalReport bare = sample_report({.depths = 0, .name = ""});
  bare.calibration.reset();
  bare.candidates.clear();
  bare.magnitudes.clear();
  bare.baseline.layers.clear();
  add("bare", bare);
  EvalReport dead = sample_report({.layers = 3, .name = ""});
  dead.magnitudes[1] = sample_magnitudes(0, 0, 2);
  dead.magnitudes[2] = sample_magnitudes(3e38f, 1e-38f, 2);
  for (AmaxAfter& part : dead.calibration->convergence) {
    part.layers[1] = layer_amax(dead.magnitudes[1]);
  }
  add("dead", dead);
  EvalReport broken = sample_report({.name = ""});
  break_numbers(broken);
  add("broken", broken);
  add("hybrid", sample_hybrid());
  add("hostile", sample_report({.name = hostile_name()}));
  return samples;
}

KvScales sample_scales(const SampleShape& shape) {
  std::vector<LayerMagnitudes> magnitudes;
  for (int64_t i = 0; i < shape.layers; ++i) {
    const auto step = static_cast<float>(i);
    magnitudes.push_back(
        sample_magnitudes(1000 / (1 + step * step), 0.01f * (1 + step), shape.heads));
  }
  KvScales scales = make_scales(magnitudes, amax_policy(ScaleSharing::tensor, 1));
  scales.model_type = "llama" + shape.name;
  scales.n_kv_heads = shape.heads;
  Provenance& from = scales.provenance;
  from.source = kCalibrateSource;
  from.tool_version = "1.2.3" + shape.name;
  from.model_fingerprint = "kv-v2:1234" + shape.name;
  from.accepted_foreign = "num_layers" + shape.name;
  from.unknown_keys = {"new_key" + shape.name};
  from.weights_from = "GPTQ" + shape.name;
  from.compute_dtype = "float16" + shape.name;
  from.observation = Observation::after_rope;
  from.documents = 3;
  from.windows = 4;
  from.tokens = 8192;
  from.data = {{"text.txt" + shape.name, 4096, "abcd" + shape.name}};
  from.parts.back() = {4096, from.amax};
  for (LayerAmax& layer : from.parts.back().layers) {
    for (float& each : layer.k) each *= 0.9f;
  }
  return scales;
}

std::vector<std::pair<std::string, KvScales>> sample_scale_files() {
  std::vector<std::pair<std::string, KvScales>> samples;
  const auto add = [&](const char* name, KvScales scales) {
    samples.emplace_back(name, std::move(scales));
  };
  const KvScales plain = sample_scales({.layers = 6, .name = ""});
  add("scales-plain", plain);
  add("scales-one", sample_scales({.layers = 1, .heads = 1, .name = ""}));
  add("scales-many", sample_scales({.layers = 128, .heads = 32, .name = ""}));
  KvScales bare = plain;
  bare.provenance.octaves.clear();
  bare.provenance.parts.back() = {};
  bare.provenance.windows = bare.provenance.tokens = 0;
  bare.provenance.data.clear();
  add("scales-bare", bare);
  KvScales dead = plain;
  const std::vector<LayerMagnitudes> odd = {sample_magnitudes(0, 0, 2),
                                            sample_magnitudes(3e38f, 1e-35f, 2)};
  apply_policy(amax_policy(ScaleSharing::tensor, 1), odd, dead);
  dead.provenance.amax.clear();
  dead.provenance.octaves.clear();
  add_magnitudes(odd, dead.provenance);
  dead.provenance.parts.back() = {4096, dead.provenance.amax};
  add("scales-dead", dead);
  KvScales mixed = plain;
  mixed.layers[1] = {};
  for (auto* layers : {&mixed.provenance.amax, &mixed.provenance.parts.back().layers})
    (*layers)[1] = {};
  mixed.provenance.octaves[1] = {};
  mixed.provenance.shards = {4, {1}, 9, 16, 32768};
  add("scales-mixed", mixed);
  KvScales turned = plain;
  turned.provenance.positions = {"longrope", 4096, 131072, {2048}};
  add("scales-turned", turned);
  add("scales-hostile", sample_scales({.layers = 6, .name = hostile_name()}));
  return samples;
}

std::vector<std::pair<std::string, std::string>> sample_pages() {
  std::vector<std::pair<std::string, std::string>> pages;
  for (const auto& [name, report] : sample_reports()) pages.emplace_back(name, html_report(report));
  for (const auto& [name, scales] : sample_scale_files()) {
    const std::string word = name == "scales-hostile" ? hostile_name() : "";
    pages.emplace_back(name, scales_html(scales, {.name = "sample" + word,
                                                  .names = {.model = "models/sample" + word,
                                                            .scales = "s.json" + word,
                                                            .copy = "sample-fp8" + word},
                                                  .date = "2026-11-22",
                                                  .tool_version = "1.2.3" + word}));
  }
  for (auto& page : sample_task_pages(hostile_name())) pages.push_back(std::move(page));
  return pages;
}

}  // namespace fp8kv::test
