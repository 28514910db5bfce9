// A test of the tests: for each feature of only some families, a golden fails without it. So nobody
// can leave out a knob unnoticed.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/read_model_config.h"
#include "model/family_knobs.h"
#include "support/models/family_model.h"
#include "support/models/goldens.h"
#include "support/models/run_model.h"

namespace fp8kv {
namespace {

struct Logits {
  explicit Logits(const std::string& golden) {
    const std::filesystem::path folder = test::source_dir() / "tests/golden" / golden;
    if (std::filesystem::exists(folder)) {
      const auto [path, file, of] = test::golden(golden.c_str());
      checkpoint = Checkpoint::open(path);
      ids = of;
    } else {
      family.emplace(golden);
      checkpoint = family->checkpoint;
      ids = family->ids;
    }
    config = read_model_config(*checkpoint);
  }
  std::optional<test::FamilyModel> family;
  std::optional<Checkpoint> checkpoint;
  ModelConfig config;
  std::vector<int32_t> ids;
};

}  // namespace

TEST_CASE("knobs: one that is left out takes a golden beyond its tolerance") {
  const auto backend = make_cpu_backend(2);
  std::vector<test::Knob> knobs;
  for (const auto& some : {test::family_knobs(), test::later_knobs()}) {
    knobs.insert(knobs.end(), some.begin(), some.end());
  }
  for (const test::Knob& knob : knobs) {
    CAPTURE(std::string(knob.what));
    CAPTURE(std::string(knob.golden));
    Logits model(knob.golden);
    const auto expected = test::run_model(*model.checkpoint, model.config, *backend, model.ids);
    knob.leave_out(model.config);
    const auto logits = test::run_model(*model.checkpoint, model.config, *backend, model.ids);
    CHECK(test::logit_difference(logits, expected) > 5 * test::kLogitTolerance);
  }
}

}  // namespace fp8kv
