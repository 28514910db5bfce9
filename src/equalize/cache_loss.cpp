#include "equalize/cache_loss.h"

#include <optional>

#include "eval/evaluate.h"
#include "policy/make_scales.h"
#include "policy/policies.h"

namespace fp8kv {
namespace {

CandidateReport candidate(const std::string& name, const CacheType& type,
                          const std::vector<LayerMagnitudes>& magnitudes) {
  CandidateReport made;
  made.name = made.dtype_name = name;
  made.dtype = type;
  if (const std::optional<KvFormat> format = scales_for(type)) {
    made.scales = make_scales(magnitudes, amax_policy(ScaleSharing::tensor, 1), false, *format);
  }
  return made;
}

// The caches to measure. A format with stored scales cannot apply to K alone.
std::vector<CandidateReport> candidates(KvFormat format, DType values,
                                        const std::vector<LayerMagnitudes>& magnitudes) {
  std::vector<CandidateReport> all;
  if (!kv_spec(format).stored_scale) {
    all.push_back(
        candidate(format_name(format) + " K", CacheType(format, kv_format(values)), magnitudes));
  }
  all.push_back(candidate(format_name(format) + " K and V", format, magnitudes));
  all.push_back(candidate("fp8_e4m3 amax K and V", KvFormat::e4m3fn, magnitudes));
  return all;
}

}  // namespace

std::vector<CacheLoss> cache_losses(const ModelOnBackend& model,
                                    const std::vector<std::vector<int32_t>>& windows,
                                    const std::vector<LayerMagnitudes>& magnitudes,
                                    const LossOptions& options, Log& log) {
  EvalReport report;
  report.candidates = candidates(options.format, model.config.dtype, magnitudes);
  evaluate(model, windows,
           {.baseline = model.config.dtype,
            .greedy_tokens = 0,
            .attention_rows = 1,
            .threads = options.threads},
           report, log);
  std::vector<CacheLoss> losses;
  for (const CandidateReport& each : report.candidates) {
    losses.push_back({each.name, each.total.kld, each.total.kld_error});
  }
  return losses;
}

}  // namespace fp8kv
