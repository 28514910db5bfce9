// Routers in F32 beside weights in 16 bits, the way training tools keep them.
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "support/models/f32_router.h"
#include "support/models/family_model.h"
#include "support/models/run_model.h"

namespace fp8kv {

TEST_CASE("experts: a router in F32 beside BF16 weights keeps its digits") {
  const test::TempDir temp;
  const auto backend = make_cpu_backend(2);
  std::vector<int32_t> ids(40);
  std::iota(ids.begin(), ids.end(), 5);
  const auto logits = [&](const char* name, DType dtype, size_t first_f32) {
    test::write_close_routers(temp / name, dtype, first_f32);
    const Checkpoint checkpoint = Checkpoint::open(temp / name);
    return test::run_model(checkpoint, read_model_config(checkpoint), *backend, ids);
  };
  const auto exact = logits("f32", DType::f32, 0);
  const auto mixed = logits("mixed", DType::bf16, 0);
  const auto rounded = logits("bf16", DType::bf16, 2);
  // BF16 weights change logits by about 2^-8. Another expert changes them by their own size.
  CHECK(test::logit_difference(mixed, exact) < 0.05);
  CHECK(test::logit_difference(rounded, exact) > 0.2);
}

TEST_CASE("experts: routers in F32 in some layers alone are refused") {
  const test::TempDir temp;
  test::write_close_routers(temp / "model", DType::bf16, 1);
  const Checkpoint checkpoint = Checkpoint::open(temp / "model");
  CHECK(test::error_of([&] { read_model_config(checkpoint); }) ==
        cat(quote((temp / "model").string()),
            ": tensor 'model.layers.1.mlp.gate.weight': is F32, but "
            "'model.layers.0.mlp.gate.weight' is BF16"));
}

TEST_CASE("hyper-connections: F32 beside BF16 weights is taken, in all layers or in none") {
  const test::TempDir temp;
  const auto backend = make_cpu_backend(2);
  const test::FamilyModel exact("hy-v4-saved-dense");
  const auto logits = [&](const char* name, const std::vector<std::string>& wide) {
    const Checkpoint checkpoint = test::write_narrow_model(temp / name, exact.golden, wide);
    return test::run_model(checkpoint, read_model_config(checkpoint), *backend, exact.ids);
  };
  const auto narrow = logits("narrow", {});
  const auto wide = logits("wide", {".hc_", "sink_param"});
  // BF16 weights change logits by about 2^-8, and these tensors are a part of them.
  CHECK(test::logit_difference(exact, narrow) < 0.05);
  CHECK(test::logit_difference(exact, wide) < 0.05);
  CHECK(wide != narrow);
  for (const char* part : {"layers.1.hc_pre.hc_attn_layer.hc_fn", "attn_layer.hc_fn", "head_fn"}) {
    const std::string refused = test::error_of([&] { logits("some", {part}); });
    CHECK(refused.find(std::string(part) + "': is F32, but 'model.") != std::string::npos);
  }
}

}  // namespace fp8kv
