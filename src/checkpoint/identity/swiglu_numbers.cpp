#include "checkpoint/identity/swiglu_numbers.h"

#include <algorithm>

#include "base/text.h"

namespace fp8kv {
namespace {

// The clamped SwiGLU of all layers, if nothing but their routed experts has it; else nullptr.
const ClampedSwiglu* one_swiglu(const std::vector<LayerSwiglu>& swiglus) {
  if (!swiglus.front().routed || swiglus.front().dense) return nullptr;
  const bool same = std::all_of(swiglus.begin(), swiglus.end(),
                                [&](const LayerSwiglu& each) { return each == swiglus.front(); });
  return same ? &*swiglus.front().routed : nullptr;
}

std::string swiglu_text(const std::optional<ClampedSwiglu>& swiglu) {
  if (!swiglu) return "none";
  switch (swiglu->form) {
    case SwigluForm::plus_one:
      return cat(swiglu->limit, " by ", swiglu->alpha);
    case SwigluForm::silu:
      return cat(swiglu->limit, " before");
    case SwigluForm::after:
      return cat(swiglu->limit, " after");
    case SwigluForm::situ:
      return cat(swiglu->limit, " smoothly, and ", swiglu->alpha);
  }
  assertion_failed("a SwigluForm", __FILE__, __LINE__);
}

}  // namespace

void add_swiglus(const ModelConfig& config, ConfigNumbers& out) {
  if (config.swiglus.empty()) return;
  if (const ClampedSwiglu* swiglu = one_swiglu(config.swiglus)) {
    const ClampedSwiglu usual;
    out.add_unless(usual.alpha, "swiglu_alpha", swiglu->alpha);
    out.add_unless(usual.limit, "swiglu_limit", swiglu->limit);
    out.add_unless(false, "swiglu_without_one", swiglu->form == SwigluForm::silu);
    out.add_unless(false, "swiglu_clamped_after", swiglu->form == SwigluForm::after);
    return;
  }
  out.add("swiglu_limits", by_layer(config.n_layers(), [&](int64_t i) {
            return swiglu_text(config.swiglu_of(i).routed);
          }));
  out.add("swiglu_limits_shared", by_layer(config.n_layers(), [&](int64_t i) {
            return swiglu_text(config.swiglu_of(i).dense);
          }));
}

}  // namespace fp8kv
