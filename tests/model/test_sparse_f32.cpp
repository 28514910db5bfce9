// Indexers with norms and weights of their heads in F32 beside weights in 16 bits, as published.
#include <cstring>
#include <fstream>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/model/read_model_config.h"
#include "core/numbers/half.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/models/run_model.h"
#include "support/models/tiny_checkpoint.h"

namespace fp8kv {
namespace {

bool is_small(const std::string& name) {
  return name.find("indexer.k_norm") != name.npos || name.find("indexer.weights") != name.npos;
}

// Writes the model in F16. Indexers' norms and weights are in F32 in layers below `n_f32`.
Checkpoint write_mixed(const test::FamilyModel& model, const std::filesystem::path& folder,
                       int64_t n_f32) {
  std::filesystem::create_directories(folder);
  std::string config = test::family_with("deepseek-v32", "torch_dtype", "\"float16\"");
  std::ofstream(folder / "config.json") << config;
  std::vector<test::TinyTensor> tensors;
  for (const auto& [name, location] : model.checkpoint.tensors()) {
    const MappedTensor mapped = model.checkpoint.map(name);
    test::TinyTensor tensor{name, mapped.view.shape, {}};
    tensor.values.resize(static_cast<size_t>(mapped.view.shape.elements()));
    std::memcpy(tensor.values.data(), mapped.view.data, mapped.view.bytes());
    // All values are numbers of F16, so that both types hold them.
    for (float& value : tensor.values) value = f16_to_float(f16_from_float(value));
    const bool early = name.find(cat("layers.", n_f32, ".")) == name.npos;
    if (is_small(name) && n_f32 > 0 && early) tensor.dtype = DType::f32;
    tensors.push_back(std::move(tensor));
  }
  test::write_tiny_weights(folder, tensors, DType::f16);
  return Checkpoint::open(folder);
}

}  // namespace

TEST_CASE("sparse attention: an indexer's small tensors in F32 give the results of their values") {
  const test::FamilyModel model("deepseek-v32");
  const auto backend = make_cpu_backend(2);
  const auto logits = [&](const char* name, int64_t n_f32) {
    const Checkpoint checkpoint = write_mixed(model, model.folder / name, n_f32);
    const ModelConfig config = read_model_config(checkpoint);
    CHECK(config.dtype == DType::f16);
    CHECK(config.indexer->f32_weights == (n_f32 > 0));
    return test::run_model(checkpoint, config, *backend, model.ids);
  };
  CHECK(test::logit_difference(logits("mixed", 3), logits("half", 0)) < test::kLogitTolerance);
}

TEST_CASE("sparse attention: weights of an indexer's heads in F32 in some layers are refused") {
  const test::FamilyModel model("deepseek-v32");
  const Checkpoint checkpoint = write_mixed(model, model.folder / "some", 2);
  CHECK(test::error_of([&] { read_model_config(checkpoint); }) ==
        cat(quote((model.folder / "some").string()),
            ": tensor 'model.layers.1.self_attn.indexer.weights_proj.weight': is F32, but "
            "'model.layers.2.self_attn.indexer.weights_proj.weight' is F16"));
}

}  // namespace fp8kv
