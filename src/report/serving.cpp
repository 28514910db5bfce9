#include "report/serving.h"

#include "base/shell.h"
#include "base/text.h"
#include "report/advice.h"
#include "report/certificate_words.h"
#include "report/serving_names.h"
#include "report/verdict.h"

namespace fp8kv {
namespace {

std::string runtime_dtype(const CandidateReport& cache) {
  if (is_e4m3(cache.dtype)) return "fp8";
  return fp8_format(cache.dtype) ? "fp8_e5m2" : cache.dtype_name;
}

// The vLLM command. Leaves out of the FP8 cache the layers that were measured in 16 bit, and those
// that the certificate keeps there.
std::string serve_command(const EvalReport& report, const CandidateReport& cache,
                          const std::string& folder) {
  Certificate certificate;
  certificate.skipped = cache.skipped;
  if (certified_candidate(report) == &cache) certificate = *certificate_of(report);
  const std::string flag = skip_flag(certificate);
  return cat("vllm serve ", folder, " --kv-cache-dtype ", runtime_dtype(cache),
             flag.empty() ? "" : " " + flag);
}

std::string calibrate_command(const EvalReport& report, const CandidateReport& cache,
                              const ServingNames& names) {
  const std::string policy = is_control(cache) ? "amax" : cache.policy;
  return cat("fp8kv calibrate ", names.model, " --data ",
             report.calibration_text.empty() ? "TEXT" : report.calibration_text,
             policy == "amax" ? "" : " --policy " + shell_word(policy),
             is_nvfp4(cache.dtype.k) ? " --kv-cache-dtype " + cache.dtype_name : "", " -o ",
             names.scales);
}

// The words before the commands: whether the verdict allows them.
std::string condition(Loss loss) {
  switch (loss) {
    case Loss::within:
    case Loss::broken:
      return "";
    case Loss::beyond:
      return "It costs more than 0.5 % of perplexity. To serve it all the same: ";
    case Loss::unclear:
    case Loss::too_little:
      break;
  }
  return "Once more text confirms it: ";
}

// Words behind others, if vLLM is not known to use the scales.
std::string doubt(const CopyFate& vllm) {
  if (vllm.use == CopyFate::Use::unknown) {
    return cat(" Whether it uses the scales is not known: ", vllm.why,
               ". 'fp8kv verify --with PYTHON' asks it.");
  }
  return vllm.use == CopyFate::Use::no_model ? cat(" vLLM ", vllm.why, ".") : "";
}

// How to serve a model that carries the scales.
Serving serving_of_own(const EvalReport& report, const CandidateReport& cache,
                       const ServingNames& names) {
  const std::string carries = cat(condition(loss_of(cache)), "The model carries these scales");
  switch (report.vllm.use) {
    case CopyFate::Use::used:
    case CopyFate::Use::unknown:
      return {cat(carries, ", and vLLM serves it.", doubt(report.vllm)),
              {serve_command(report, cache, names.model)}};
    case CopyFate::Use::useless:
      return {cat(carries, ", but vLLM has no use for them: ", report.vllm.why, "."), {}};
    case CopyFate::Use::no_model:
      return {cat(carries, ".", doubt(report.vllm)), {}};
  }
  assertion_failed("a CopyFate", __FILE__, __LINE__);
}

}  // namespace

Serving serving_of(const EvalReport& report) {
  const CandidateReport* cache = advise(report).cache;
  if (cache == nullptr) return {};
  const Loss loss = loss_of(*cache);
  if (loss == Loss::broken && !is_control(*cache)) {
    return {cat("There is no command to give: ", cache->name,
                " is broken, and no other cache "
                "measured is nearer to ",
                report.baseline.name, "."),
            {}};
  }
  // Scales of a policy must be made by calibrate first. A scale file or a checkpoint already
  // exists.
  const bool of_policy = report.calibration.has_value() || is_control(*cache);
  const bool is_written = !report.scales_file.empty() && !is_control(*cache);
  const std::filesystem::path file = is_written  ? report.scales_file
                                     : of_policy ? "scales.json"
                                                 : cache->policy;
  const ServingNames names =
      serving_names(file, report.model, cache->scales ? cache->scales->format : KvFormat::e4m3fn);
  if (is_control(*cache) || cache->scales) {
    if (cache->policy == "checkpoint") return serving_of_own(report, *cache, names);
    if (report.vllm.use == CopyFate::Use::useless) {
      return {cat(condition(loss),
                  "vLLM serves the model as it is: scales in a copy would have no use. vLLM: ",
                  report.vllm.why, "."),
              {serve_command(report, *cache, names.model)}};
    }
    std::vector<std::string> commands;
    if (of_policy && !is_written) commands.push_back(calibrate_command(report, *cache, names));
    const bool per_head = cache->scales && cache->scales->per_head();
    commands.push_back(cat("fp8kv inject ", names.model, " --scales ", names.scales, " -o ",
                           names.copy, per_head ? " --for vllm" : ""));
    const bool serves = report.vllm.use != CopyFate::Use::no_model;
    if (serves) commands.push_back(serve_command(report, *cache, names.copy));
    const std::string what = is_control(*cache) ? "Scales of 1 are a control. Calibrated scales"
                                                : cat("The scales of ", cache->name);
    return {cat(is_control(*cache) ? "" : condition(loss), what, " go into a copy of the model",
                serves ? ", and vLLM serves the copy." : ".", doubt(report.vllm)),
            commands};
  }
  if (report.vllm.use == CopyFate::Use::no_model) {
    return {cat(condition(loss), cache->name, " has no scales.", doubt(report.vllm)), {}};
  }
  return {cat(condition(loss), cache->name, " has no scales. vLLM serves the model as it is."),
          {serve_command(report, *cache, names.model)}};
}

}  // namespace fp8kv
