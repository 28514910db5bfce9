// The experts that a calibration reached, and its note about the others.
#include <limits>
#include <numeric>
#include <string>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "calib/collect.h"
#include "calib/measure/expert_reach.h"
#include "checkpoint/model/read_model_config.h"
#include "support/expect_error.h"
#include "support/models/tiny_config.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

using Reached = std::vector<std::vector<uint64_t>>;

ModelConfig three_layers() {
  test::TinyConfig config = test::tiny_config("Qwen3MoeForCausalLM");
  config.n_layers = 3;
  config.dense_layers = {};
  return test::model_of(config);
}

}  // namespace

TEST_CASE("expert reach: experts without tokens are named, of layers whose experts were computed") {
  const ModelConfig config = three_layers();
  CHECK(unreached_experts(config, {{1, 2, 0, 4, 5, 0}, {1, 1, 1, 1, 1, 0}, {0, 0, 0, 0, 0, 0}}) ==
        "no token reached 3 of 12 experts: layer 0: 2, 5; layer 1: 5");
  CHECK(unreached_experts(config, {{1, 2, 3, 4, 5, 6}, {1, 1, 1, 1, 1, 1}, {1, 0, 0, 1, 1, 1}}) ==
        "no token reached 2 of 18 experts: layer 2: 1, 2");
  CHECK_FALSE(unreached_experts(config, {{1, 1, 1, 1, 1, 1}, {2, 2, 2, 2, 2, 2}, {}}));
  CHECK_FALSE(unreached_experts(test::model_of(test::tiny_config()), {}));
}

TEST_CASE("expert reach: of many the first are named") {
  ModelConfig config = three_layers();
  config.layers.resize(11, config.layers.front());
  for (size_t i = 0; i < config.layers.size(); ++i) {
    config.layers[i].cache_of = static_cast<int64_t>(i);
  }
  Reached reached(11, std::vector<uint64_t>(20, 0));
  for (size_t i = 0; i < 10; ++i) reached[i][19] = 1;
  const std::string text = unreached_experts(config, reached).value();
  CHECK(
      text.starts_with("no token reached 190 of 200 experts: layer 0: 0, 1, 2, 3, 4, 5, 6, 7, "
                       "and 11 more; layer 1: 0, "));
  CHECK(text.ends_with("; and 2 more"));
}

TEST_CASE("expert reach: a calibration counts every token as often as it is sent") {
  const test::TempDir folder;
  test::TinyConfig shape = test::tiny_config("Qwen3MoeForCausalLM");
  shape.n_layers = 3;  // the layer in the middle has no experts
  test::write_tiny_checkpoint(folder / "m", shape);
  const Checkpoint checkpoint = Checkpoint::open(folder / "m");
  const ModelConfig config = read_model_config(checkpoint);
  const std::vector<std::vector<int32_t>> windows = {{3, 4, 5, 6, 7}, {8, 9, 10}};
  const auto backend = make_cpu_backend(2);
  Log log(Verbosity::quiet);
  const auto found = collect({checkpoint, config, *backend}, windows, log, {.batch_rows = 4});
  REQUIRE(found.reached.size() == 3);
  const auto sum = [&](size_t layer) {
    return std::accumulate(found.reached[layer].begin(), found.reached[layer].end(), uint64_t{0});
  };
  CHECK(sum(0) == 8 * 2);
  CHECK(sum(1) == 0);
  CHECK(sum(2) == 0);  // the last layer needs only K and V
}

TEST_CASE("expert reach: a router that gives NaN stops a calibration at the next layer's K") {
  const test::TempDir folder;
  const test::TinyConfig shape = test::tiny_config("MixtralForCausalLM");
  test::write_tiny_checkpoint(folder / "m", shape);
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(shape);
  for (test::TinyTensor& tensor : tensors) {
    if (tensor.name != "model.layers.0.block_sparse_moe.gate.weight") continue;
    tensor.values[3] = std::numeric_limits<float>::quiet_NaN();
  }
  test::write_tiny_weights(folder / "m", tensors, shape.dtype);
  const Checkpoint checkpoint = Checkpoint::open(folder / "m");
  const ModelConfig config = read_model_config(checkpoint);
  const auto backend = make_cpu_backend(1);
  Log log(Verbosity::quiet);
  const std::string error = test::error_of([&] {
    collect_magnitudes({checkpoint, config, *backend}, {{3, 4, 5}}, log);
  });
  CHECK(error.find("layer 1") != std::string::npos);
}

}  // namespace fp8kv
