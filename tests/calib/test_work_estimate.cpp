#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "calib/work_estimate.h"
#include "checkpoint/model/read_model_config.h"
#include "support/models/tiny_checkpoint.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

TEST_CASE("work estimate: counts every product, and attention, of each token") {
  const test::TempDir folder;
  const test::TinyConfig shape = test::tiny_config();
  test::write_tiny_checkpoint(folder / "m", shape);
  const ModelConfig config = read_model_config(Checkpoint::open(folder / "m"));
  const double dim = static_cast<double>(shape.dim), hidden = static_cast<double>(shape.hidden_dim);
  const double q = static_cast<double>(shape.n_heads * shape.head_dim);
  const double kv = static_cast<double>(shape.n_kv_heads * shape.head_dim);
  const double entry = dim * (q + 2 * kv), rest = dim * q + 3 * dim * hidden;
  const double whole_layers = static_cast<double>(shape.n_layers - 1);
  // Windows of 6 and 4 tokens. Each token attends to the tokens before it and counts half for
  // itself.
  const double pairs = 6 * 6 / 2.0 + 4 * 4 / 2.0;
  const std::vector<std::vector<int32_t>> windows = {{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4}};
  CHECK(
      multiply_adds(config, windows) ==
      doctest::Approx(10 * (whole_layers * (entry + rest) + entry) + whole_layers * pairs * 2 * q));
}

TEST_CASE("work estimate: a speed is measured") {
  const test::TempDir folder;
  test::write_tiny_checkpoint(folder / "m", test::tiny_config());
  const ModelConfig config = read_model_config(Checkpoint::open(folder / "m"));
  const auto backend = make_cpu_backend(1);
  const double speed = measured_speed(*backend, config);
  CHECK(speed > 1e6);  // true on any machine, with any sanitizer
  CHECK(speed < 1e15);
}

}  // namespace
}  // namespace fp8kv
