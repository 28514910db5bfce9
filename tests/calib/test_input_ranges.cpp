// The largest magnitudes of the inputs of matrices.
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "base/error.h"
#include "base/log.h"
#include "calib/collect.h"
#include "calib/measure/input_ranges.h"
#include "checkpoint/model/read_model_config.h"
#include "quantize/linear_choice.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/models/tiny_checkpoint.h"
#include "support/models/tiny_config.h"
#include "support/models/windows.h"
#include "support/reference/input_ranges.h"
#include "support/temp_dir.h"

namespace fp8kv {

TEST_CASE("input ranges: every matrix multiplies what it does in transformers") {
  const auto backend = make_cpu_backend(2);
  for (const std::string& name : test::input_range_cases()) {
    test::check_input_ranges(name, *backend);
  }
}

TEST_CASE("input ranges: every matrix that quantize takes is seen, in every family") {
  const auto backend = make_cpu_backend(2);
  size_t seen = 0;
  for (const std::string& name : test::family_cases()) {
    CAPTURE(name);
    const test::FamilyModel model(name);
    LinearChoice choice;
    try {
      choice = choose_linears(model.checkpoint, model.config);
    } catch (const Error&) {
      continue;  // refused, with and without ranges
    }
    const ModelConfig written = written_config(model.config);
    InputRanges ranges(*backend, written);
    Log log(Verbosity::quiet);
    collect_magnitudes({model.checkpoint, model.config, ranges}, {model.ids}, log,
                       {.inputs = &ranges});
    for (const std::string& tensor : choice.quantised) {
      CAPTURE(tensor);
      REQUIRE(ranges.input_amax().contains(tensor));
      CHECK(ranges.input_amax().at(tensor) > 0);
      ++seen;
    }
  }
  CHECK(seen > 1000);
}

TEST_CASE("input ranges: the same for any number of threads and any batches") {
  const test::TempDir temp;
  test::write_tiny_checkpoint(temp / "m", test::tiny_config("Qwen2MoeForCausalLM"));
  const Checkpoint checkpoint = Checkpoint::open(temp / "m");
  const ModelConfig config = read_model_config(checkpoint);
  const auto windows = test::windows_of({70, 1, 33, 64}, 3);
  const auto found = [&](int threads, int64_t batch_rows) {
    const auto backend = make_cpu_backend(threads);
    InputRanges ranges(*backend, config);
    Log log(Verbosity::quiet);
    collect_magnitudes({checkpoint, config, ranges}, windows, log,
                       {.batch_rows = batch_rows, .inputs = &ranges});
    return ranges.input_amax();
  };
  const auto one = found(1, 512);
  CHECK(!one.empty());
  CHECK(found(5, 512) == one);
  CHECK(found(2, 64) == one);
}

TEST_CASE("input ranges: what is no number is told with the tensor that multiplied it") {
  const test::TempDir temp;
  const test::TinyConfig tiny = test::tiny_config();
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(tiny);
  for (test::TinyTensor& tensor : tensors) {
    if (tensor.name != "model.layers.1.mlp.up_proj.weight") continue;
    tensor.values.front() = std::numeric_limits<float>::infinity();
  }
  std::filesystem::create_directories(temp / "m");
  temp.write("m/config.json", test::tiny_config_json(tiny));
  test::write_tiny_weights(temp / "m", tensors, tiny.dtype);
  const Checkpoint checkpoint = Checkpoint::open(temp / "m");
  const ModelConfig config = read_model_config(checkpoint);
  const auto backend = make_cpu_backend(1);
  InputRanges ranges(*backend, config);
  Log log(Verbosity::quiet);
  const std::string error = test::error_of([&] {
    collect_magnitudes({checkpoint, config, ranges}, test::windows_of({9}, 3), log,
                       {.inputs = &ranges});
  });
  CHECK(error.find("what tensor 'model.layers.1.mlp.down_proj.weight' multiplies has values that "
                   "are NaN or infinite") != std::string::npos);
}

}  // namespace fp8kv
