// The states that layers keep of a sequence, besides their results.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "model/parts/layer_states.h"
#include "model/step.h"
#include "support/backends/cpu.h"
#include "support/models/family_model.h"
#include "support/models/run_model.h"

namespace fp8kv {
namespace {

// The states of all layers after the ids have gone through in steps of these sizes.
std::vector<float> kept_after(const test::FamilyModel& model, const std::vector<size_t>& sizes) {
  const ModelConfig& config = model.config;
  const auto backend = make_cpu_backend(2);
  test::SteppedRun run(model.checkpoint, config, *backend, model.ids,
                       {.cache_dtype = DType::f8_e4m3});
  for (const size_t size : sizes) static_cast<void>(run.step(size, kPromptStep));
  REQUIRE(run.done() == model.ids.size());
  std::vector<float> all;
  for (int64_t i = 0; i < config.n_layers(); ++i) {
    const LayerState own = run.states().layer(i);
    for (const TensorView& view :
         {own.conv_q, own.conv_k, own.conv_v, own.recurrent, own.conv_ngrams, own.short_k,
          own.short_v, own.short_attn, own.short_ffn, own.pool, own.index_pool}) {
      if (view.data == nullptr) continue;  // few layers have all of them
      const std::vector<float> values = test::floats_of(*backend, view);
      all.insert(all.end(), values.begin(), values.end());
    }
  }
  return all;
}

TEST_CASE("layer states: what is kept after a text is the same however it was cut into steps") {
  for (const char* name :
       {"qwen3-next", "granite4", "nemotron-h", "bamba", "falcon-h1", "falcon-h1-bias",
        "falcon-h1-new-keys", "lfm2", "lfm2-seven", "lfm2-moe", "qwen4-exp", "inkling",
        "inkling-seven", "minimax-01", "glm5-next", "deepseek-v4", "zamba2"}) {
    CAPTURE(std::string(name));
    const test::FamilyModel model(name);
    const size_t n = model.ids.size();
    const ModelConfig& config = model.config;
    const int64_t tokens = config.short_convs  ? config.short_convs->width
                           : config.recurrence ? config.recurrence->conv_width
                                               : 0;
    const auto width = static_cast<size_t>(std::max<int64_t>(2, tokens));
    const std::vector<float> whole = kept_after(model, {n});
    CHECK_FALSE(whole.empty());
    CHECK(kept_after(model, std::vector<size_t>(n, 1)) == whole);
    for (size_t first = width - 1; first <= width + 1; ++first) {
      CAPTURE(first);
      if (first > 0) CHECK(kept_after(model, {first, n - first}) == whole);
      CHECK(kept_after(model, {n - first - 1, 1, first}) == whole);
    }
    CHECK(kept_after(model, {16, 1, 1, n - 18}) == whole);
  }
}

}  // namespace
}  // namespace fp8kv
