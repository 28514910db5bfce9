#include "inputs/eval_candidates.h"

#include <algorithm>

#include "base/error.h"
#include "inputs/cache_choice.h"
#include "inputs/model_cache.h"
#include "inputs/scale_source.h"
#include "options/kv_dtype.h"
#include "policy/make_scales.h"

namespace fp8kv {
namespace {

ScaleChoice scales_of_checkpoint(const Checkpoint& checkpoint, const ModelConfig& config,
                                 Log& log) {
  std::optional<KvScales> carried = scales_carried_by(checkpoint, config, log);
  if (carried) return {"checkpoint", std::move(carried), {}};
  log.note(cat(quote(checkpoint.folder().string()),
               " carries no KV scales; evaluating those that --policy amax makes"));
  return {"", std::nullopt, {parse_policy("amax")}};
}

CandidateReport make_candidate(const CacheType& dtype, const std::string& policy,
                               std::optional<KvScales> scales, std::vector<int64_t> skipped) {
  CandidateReport made;
  made.dtype = dtype;
  made.dtype_name = kv_dtype_name(dtype);
  made.policy = policy;
  made.name = policy.empty() ? made.dtype_name : cat(made.dtype_name, " ", policy);
  if (!skipped.empty() && !is_compute_dtype(dtype)) {
    made.name += cat(", 16-bit ", layer_list({skipped.begin(), skipped.end()}));
    made.skipped = std::move(skipped);
  }
  if (scales) {
    made.scales =
        with_context(quote(policy), [&] { return with_format(*scales, *scales_for(dtype)); });
  }
  return made;
}

// Whether runtimes keep this model's cache in blocks (fp8_ds_mla). They do so for DeepSeek V3's
// sizes.
bool in_blocks_elsewhere(const ModelConfig& config) {
  return config.latent && config.latent->rank == 512 && config.latent->rope_dim == 64;
}

// The caches to measure. Without --kv-cache-dtype this includes the cache in blocks, if runtimes
// may use it instead of the cache with scales.
std::vector<CacheType> asked_types(const EvalCommandOptions& options, const ModelConfig& config) {
  std::vector<CacheType> types;
  for (const std::optional<CacheType>& asked : options.kv_cache_dtypes) {
    types.push_back(asked.value_or(config.dtype));
  }
  if (!options.dtypes_given && in_blocks_elsewhere(config)) types.push_back(KvFormat::ds_mla);
  return types;
}

// Adds variants of E4M3 caches with the arithmetic of other kernels. Each variant follows its plain
// cache.
void add_variants(const EvalCommandOptions& options, std::vector<CandidateReport>& candidates) {
  std::vector<CandidateReport> all;
  for (CandidateReport& each : candidates) {
    const bool e4m3fn = each.dtype == CacheType(KvFormat::e4m3fn);
    const auto add = [&](bool wanted, const char* what, const CacheArithmetic& arithmetic) {
      if (!wanted || !e4m3fn) return;
      all.push_back(each);
      all.back().name += what;
      all.back().arithmetic = arithmetic;
    };
    add(true, "", {});
    if (!e4m3fn) all.push_back(each);
    add(options.fp8_attention, ", attention in FP8", {.fp8_attention = true});
    add(options.toward_zero, ", rounded towards zero", {.toward_zero = true});
  }
  candidates = std::move(all);
}

// Adds scales of Q for --attention fp8, if the source has maxima of Q. Otherwise notes that Q takes
// 1.
std::optional<KvScales> with_q(std::optional<KvScales> scales, const EvalCommandOptions& options,
                               const std::string& source, Log& log) {
  if (!options.fp8_attention || (scales && has_q_scales(*scales))) return scales;
  const bool known = scales && !scales->latent && !scales->provenance.amax.empty();
  if (known) return with_q_scales(*scales, source);
  log.note(cat("note: ", source, " has no scales of Q: attention in FP8 takes 1, as vLLM does"));
  return scales;
}

void check_unique(const std::vector<CandidateReport>& candidates) {
  for (size_t i = 0; i < candidates.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (candidates[i].name != candidates[j].name) continue;
      throw Error(cat("the candidate ", quote(candidates[i].name), " is asked for twice"),
                  "name every dtype and every policy once", ErrorKind::usage);
    }
  }
}

void check_variants(const EvalCommandOptions& options,
                    const std::vector<CandidateReport>& candidates) {
  const char* flag = options.fp8_attention ? "--attention fp8"
                     : options.toward_zero ? "--fp8-rounding toward-zero"
                                           : nullptr;
  const bool any = std::any_of(candidates.begin(), candidates.end(), [](const auto& each) {
    return each.arithmetic != CacheArithmetic();
  });
  if (flag == nullptr || any) return;
  throw Error(cat(flag, ": is about fp8_e4m3 caches, and none is measured"),
              "add fp8_e4m3 to --kv-cache-dtype", ErrorKind::usage);
}

void check_scales_used(const EvalCommandOptions& options,
                       const std::vector<CandidateReport>& candidates) {
  const bool given =
      !options.scales.empty() || !options.policies.empty() || !options.calibrate_on.empty();
  const bool used = std::any_of(candidates.begin(), candidates.end(), [](const auto& each) {
    return scales_for(each.dtype).has_value();
  });
  if (!given || used) return;
  throw Error("no cache of --kv-cache-dtype takes such scales",
              "add fp8_e4m3, or leave out --scales, --policy and --calibrate-on", ErrorKind::usage);
}

}  // namespace

ScaleChoice choose_scales(const EvalCommandOptions& options, const Checkpoint& checkpoint,
                          const ModelConfig& config, Log& log) {
  if (!options.calibrate_on.empty() && (options.unit_scales || !options.scales.empty())) {
    throw Error("--calibrate-on is text for the scales of --policy, and there are scales already",
                "leave out --scales and --unit-scales", ErrorKind::usage);
  }
  if (options.unit_scales) return {"unit", std::nullopt, {}};
  if (!options.scales.empty()) {
    return {plain(options.scales.filename().string()),
            load_scales_for(options.scales, options.accept_foreign, checkpoint, config, log),
            {}};
  }
  if (!options.policies.empty()) return {"", std::nullopt, options.policies};
  if (!options.calibrate_on.empty()) return {"", std::nullopt, {parse_policy("amax")}};
  return scales_of_checkpoint(checkpoint, config, log);
}

std::vector<CandidateReport> make_candidates(const EvalCommandOptions& options,
                                             const ScaleChoice& choice, const ModelConfig& config,
                                             Log& log) {
  std::vector<CandidateReport> candidates;
  std::optional<KvScales> given = choice.scales;
  if (choice.policies.empty()) given = with_q(std::move(given), options, choice.label, log);
  for (const CacheType& dtype : asked_types(options, config)) {
    std::vector<std::string> names = options.skip_layers;
    if (names.empty() && choice.scales) names = layer_names(choice.scales->skipped);
    const std::vector<int64_t> skipped = model_cache(dtype, config.dtype, names, config).left;
    const auto candidate = [&](const CacheType& type, const std::string& policy,
                               std::optional<KvScales> scales) {
      return make_candidate(type, policy, std::move(scales), skipped);
    };
    const std::optional<KvFormat> scaled = scales_for(dtype);
    if (!scaled) {
      candidates.push_back(candidate(dtype, "", std::nullopt));
      continue;
    }
    if (choice.policies.empty()) {
      candidates.push_back(candidate(dtype, choice.label, given));
    }
    for (const Policy& policy : choice.policies) {
      if (is_nvfp4(*scaled) && !policy.kind->for_nvfp4()) {
        log.note(cat("policy ", policy_name(policy), " makes no scales for ", kv_dtype_name(dtype),
                     ", which has one for K and one for V of a layer"));
        continue;
      }
      candidates.push_back(candidate(dtype, policy_name(policy), std::nullopt));
    }
  }
  check_unique(candidates);
  check_scales_used(options, candidates);
  add_variants(options, candidates);
  check_variants(options, candidates);
  return candidates;
}

std::vector<CandidateReport> candidates_against(const EvalCommandOptions& options,
                                                const Checkpoint& checkpoint,
                                                const ModelConfig& config, ScaleChoice& choice,
                                                Log& log) {
  std::vector<CandidateReport> candidates = {make_candidate(config.dtype, "", std::nullopt, {})};
  const bool asked = options.dtypes_given || options.unit_scales || !options.scales.empty() ||
                     !options.policies.empty() || !options.calibrate_on.empty();
  if (asked) {
    choice = choose_scales(options, checkpoint, config, log);
  } else {
    std::optional<KvScales> carried = scales_carried_by(checkpoint, config, log);
    if (!carried) return candidates;
    choice = {"checkpoint", std::move(carried), {}};
  }
  for (CandidateReport& each : make_candidates(options, choice, config, log)) {
    if (each.name != candidates[0].name) candidates.push_back(std::move(each));
  }
  return candidates;
}

namespace {

// Gives each layer a scale of Q: its largest Q / 448.
void add_q_scales(const std::vector<LayerMagnitudes>& magnitudes, KvScales& scales) {
  for (size_t i = 0; i < std::min(magnitudes.size(), scales.layers.size()); ++i) {
    if (!scales.layers[i].has_cache()) continue;
    scales.layers[i].q = {scale_from_amax(largest(layer_amax(magnitudes[i]).q), scales.format, 1)};
  }
}

}  // namespace

bool want_magnitudes(const ScaleChoice& choice, const std::vector<CandidateReport>& candidates) {
  return std::any_of(candidates.begin(), candidates.end(), [&](const auto& each) {
    return std::any_of(choice.policies.begin(), choice.policies.end(), [&](const Policy& policy) {
      return policy_name(policy) == each.policy && policy.kind->needs != PolicyNeeds::nothing;
    });
  });
}

bool want_losses(const ScaleChoice& choice) {
  return std::any_of(choice.policies.begin(), choice.policies.end(), [](const Policy& policy) {
    return policy.kind->needs == PolicyNeeds::losses;
  });
}

void add_policy_scales(const std::vector<LayerMagnitudes>& magnitudes, const ScaleChoice& choice,
                       bool latent, std::vector<CandidateReport>& candidates) {
  for (const Policy& policy : choice.policies) {
    if (policy.kind->needs == PolicyNeeds::nothing) continue;  // no scales: 1 everywhere
    const KvScales scales = make_scales(magnitudes, policy, latent);
    for (CandidateReport& each : candidates) {
      if (each.policy != policy_name(policy)) continue;
      const KvFormat format = *scales_for(each.dtype);
      each.scales = is_nvfp4(format) ? make_scales(magnitudes, policy, latent, format)
                                     : with_format(scales, format);
      if (each.arithmetic.fp8_attention) add_q_scales(magnitudes, *each.scales);
    }
  }
}

DType baseline_dtype(const EvalCommandOptions& options, const ModelConfig& config) {
  const CacheType type = kv_dtype_from_name(options.baseline).value_or(config.dtype);
  if (is_compute_dtype(type)) return *kv_elements(type);
  throw Error(cat("--baseline ", options.baseline,
                  ": is not a 16-bit cache, expected float32, float16 or bfloat16"),
              "name FP8 caches with --kv-cache-dtype", ErrorKind::usage);
}

}  // namespace fp8kv
