// Counts the kernels of a layer: waits between kernels take most of a small step's time on a GPU.
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "kernels/sim/sim.h"
#include "model/model.h"
#include "model/step.h"
#include "model/weights/weight_loader.h"
#include "support/backends/gpu_backends.h"
#include "support/models/block_model.h"

namespace fp8kv {
namespace {

size_t launches_of(const std::function<void()>& work) {
  sim::begin_recording();
  work();
  return sim::end_recording().size();
}

// Kernels of the model's first layer, in a step of one sequence with `rows` tokens.
size_t launches_of_layer(Backend& backend, const test::BlockModel& model, int64_t rows) {
  const ModelConfig& config = model.config;
  KvCache cache(backend, config, {config.dtype, 1}, nullptr);
  Forward forward(backend, config, rows, rows);
  Step step(backend, rows, 1, 1, config.block.differential);
  KvCache::Sequence sequence;
  REQUIRE(cache.extend(sequence, rows));
  std::vector<int32_t> ids(static_cast<size_t>(rows));
  std::iota(ids.begin(), ids.end(), 0);
  step.add(ids, sequence);
  step.upload();
  const LayerWeights weights = WeightLoader(model.checkpoint, config, backend).layer(0);
  const Tensor x = backend.allocate(forward.activation_dtype(), Shape{rows, config.dim});
  const auto layer = [&] { forward.layer(0, weights, x.view(), {step.batch(), cache.layer(0)}); };
  layer();  // allocates the memory that ops keep
  return launches_of(layer);
}

void check_launches(const test::BlockVariant& variant, size_t of_one_row, size_t of_many) {
  CAPTURE(variant.name);
  const test::BlockModel model(variant, DType::bf16, 64);
  test::on_every_backend([&](Backend& backend) {
    CHECK(launches_of_layer(backend, model, 1) == of_one_row);
    CHECK(launches_of_layer(backend, model, 20) == of_many);
  });
}

}  // namespace

TEST_CASE("launches: a layer of Llama is 6 kernels for a row that decodes, 9 for a prompt") {
  // 6: project_append, attention and its sum over chunks, linear, hidden, linear. 9: norm, linear,
  // rope_append, attention, linear, norm, linear, activate, linear.
  check_launches({"Llama", [](test::TinyConfig&) {}}, 6, 9);
}

TEST_CASE("launches: what a layer has more costs no more than that") {
  check_launches({"norm weights less 1", [](test::TinyConfig& c) { c.block.norm_plus_one = true; }},
                 6, 9);
  check_launches({"gelu", [](test::TinyConfig& c) { c.block.activation = Activation::gelu_tanh; }},
                 6, 9);
  check_launches({"parallel", [](test::TinyConfig& c) { c.block.parallel = true; }}, 6, 9);
  // Plus two norms and two sums.
  check_launches(
      {"norms around", [](test::TinyConfig& c) { c.block.norm_place = NormPlace::around; }}, 10,
      13);
  // Plus two sums.
  check_launches({"residual", [](test::TinyConfig& c) { c.block.residual_multiplier = 0.5; }}, 8,
                 11);
}

}  // namespace fp8kv
