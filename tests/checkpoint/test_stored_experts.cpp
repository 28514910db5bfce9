// Tensors of experts that files may have or lack: a choice bias, the norm of their
// output.
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "checkpoint/model/read_model_config.h"
#include "json/json.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/places.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

// The error for a golden's model with `from` in its description replaced by `to` once.
std::string error_with(const std::string& name, std::string_view from, std::string_view to) {
  const test::TempDir folder;
  std::string text =
      test::read_file(test::source_dir() / "tests/golden/families" / (name + ".json"));
  const size_t at = text.find(from);
  REQUIRE(at != text.npos);
  text.replace(at, from.size(), to);
  const Checkpoint changed =
      test::write_golden_model(folder / "model", Json::parse(text, "golden", JsonNumbers::python));
  return test::error_of([&] { read_model_config(changed); });
}

}  // namespace

TEST_CASE("stored experts: a choice bias that may be absent is in all layers or in none") {
  CHECK_FALSE(test::FamilyModel("axk1").config.experts->choice_bias);
  CHECK(test::FamilyModel("axk1-new-keys").config.experts->choice_bias);
  CHECK(error_with("axk1-new-keys", "layers.0.mlp.gate.e_score_correction_bias",
                   "layers.0.mlp.gate.e_score")
            .find("has no tensor 'model.layers.0.mlp.gate.e_score_correction_bias'") !=
        std::string::npos);
}

TEST_CASE("stored experts: a dense layer may have the norm of experts' output, and no other") {
  CHECK(error_with("axk1", "model.layers.0.post_mlp_layernorm.weight",
                   "model.layers.0.post_mlp_norm.weight")
            .ends_with("tensor 'model.layers.0.post_mlp_norm.weight': is not a part of "
                       "AXK1ForCausalLM with this config.json"));
}

}  // namespace fp8kv
