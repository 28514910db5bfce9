#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "calib/collect.h"
#include "checkpoint/model/read_model_config.h"
#include "eval/evaluate.h"
#include "fit/layer_costs.h"
#include "policy/make_scales.h"
#include "support/models/tiny_checkpoint.h"
#include "support/models/windows.h"
#include "support/temp_dir.h"

using namespace fp8kv;

namespace {

struct CostModel {
  test::TempDir folder;
  Checkpoint checkpoint;
  ModelConfig config;
  std::vector<std::vector<int32_t>> windows = test::windows_of({40, 40}, 11);

  CostModel()
      : checkpoint([&] {
          test::TinyConfig shape = test::tiny_config();
          shape.dtype = DType::bf16;
          test::write_tiny_checkpoint(folder / "m", shape);
          return Checkpoint::open(folder / "m");
        }()),
        config(read_model_config(checkpoint)) {}

  std::vector<FitFormat> formats() const {
    Log log(Verbosity::quiet);
    const auto backend = make_cpu_backend(2);
    FitFormat fp8{"fp8_e4m3", KvFormat::e4m3fn};
    fp8.scales = make_scales(collect_magnitudes({checkpoint, config, *backend}, windows, log),
                             parse_policy("amax"));
    return {fp8, {"int8_per_token_head", KvFormat::int8_per_token_head}};
  }
  std::vector<FormatCosts> costs(CostOptions options) const {
    Log log(Verbosity::quiet);
    const auto backend = make_cpu_backend(options.threads);
    return layer_costs({checkpoint, config, *backend}, windows, formats(), options, log);
  }
};

void check_same(const std::vector<FormatCosts>& a, const std::vector<FormatCosts>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].all_kld == b[i].all_kld);
    REQUIRE(a[i].layers.size() == b[i].layers.size());
    for (size_t j = 0; j < a[i].layers.size(); ++j) {
      CHECK(a[i].layers[j].layer == b[i].layers[j].layer);
      CHECK(a[i].layers[j].kld == b[i].layers[j].kld);
      CHECK(a[i].layers[j].error == b[i].layers[j].error);
    }
  }
}

}  // namespace

TEST_CASE("layer costs: have the same bits for any number of threads and passes") {
  const CostModel model;
  const std::vector<FormatCosts> costs = model.costs({.threads = 2});
  REQUIRE(costs.size() == 2);
  REQUIRE(costs[0].layers.size() == static_cast<size_t>(model.config.n_layers()));
  check_same(costs, model.costs({.threads = 1}));
  check_same(costs, model.costs({.threads = 2, .stream_bytes = 1}));
}

TEST_CASE("layer costs: are those of an evaluation of that layer alone") {
  const CostModel model;
  const std::vector<FitFormat> formats = model.formats();
  const std::vector<FormatCosts> costs = model.costs({.threads = 2});
  Log log(Verbosity::quiet);
  const auto backend = make_cpu_backend(2);
  const int64_t n_layers = model.config.n_layers();
  for (size_t format = 0; format < formats.size(); ++format) {
    for (int64_t layer = 0; layer < n_layers; ++layer) {
      EvalReport report;
      CandidateReport& candidate = report.candidates.emplace_back();
      candidate.dtype = formats[format].type;
      candidate.scales = formats[format].scales;
      for (int64_t i = 0; i < n_layers; ++i) {
        if (i != layer) candidate.skipped.push_back(i);
      }
      evaluate({model.checkpoint, model.config, *backend}, model.windows,
               {.baseline = model.config.dtype, .greedy_tokens = 0, .threads = 2}, report, log);
      const LayerCost& cost = costs[format].layers[static_cast<size_t>(layer)];
      CHECK(cost.kld == report.candidates[0].total.kld);
      CHECK(cost.error == report.candidates[0].total.kld_error);
      CHECK(cost.kld > 0);
    }
  }
}
