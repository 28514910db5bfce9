// Tensors of experts that files may have or lack: a choice bias, the norm of their output, experts
// for images.
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

// A golden's model with `from` in its description replaced by `to` once.
Checkpoint changed_model(const test::TempDir& folder, const std::string& name,
                         std::string_view from, std::string_view to) {
  std::string text =
      test::read_file(test::source_dir() / "tests/golden/families" / (name + ".json"));
  const size_t at = text.find(from);
  REQUIRE(at != text.npos);
  text.replace(at, from.size(), to);
  return test::write_golden_model(folder / "model",
                                  Json::parse(text, "golden", JsonNumbers::python));
}

std::string error_with(const std::string& name, std::string_view from, std::string_view to) {
  const test::TempDir folder;
  const Checkpoint changed = changed_model(folder, name, from, to);
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

TEST_CASE("stored experts: identities may have matrices, and no expert behind them may") {
  const std::string name = "model.layers.1.mlp.experts.8.up_proj.weight";
  CHECK(error_with("longcat-flash", name, "model.layers.1.mlp.experts.9.up_proj.weight")
            .ends_with("tensor 'model.layers.1.mlp.experts.9.up_proj.weight': is not a part of "
                       "LongcatFlashForCausalLM with this config.json"));
  const test::TempDir folder;
  const Checkpoint without =
      changed_model(folder, "longcat-flash", name, "model.mtp.layers.0.mlp.up_proj.weight");
  CHECK(read_model_config(without).experts->identities == 3);
}

TEST_CASE("stored experts: there are as many experts for images as for text") {
  CHECK(error_with("ernie4_5-vl", "model.layers.1.mlp.experts.11.up_proj.weight",
                   "model.layers.1.mlp.experts.12.up_proj.weight")
            .ends_with("tensor 'model.layers.1.mlp.experts.12.up_proj.weight': is not a part of "
                       "Ernie4_5_VLMoeForConditionalGeneration with this config.json"));
  CHECK(error_with("ernie4_5-vl", "model.layers.1.mlp.experts.11.up_proj.weight",
                   "model.layers.0.mlp.experts.11.up_proj.weight")
            .ends_with("tensor 'model.layers.0.mlp.experts.11.up_proj.weight': is not a part of "
                       "Ernie4_5_VLMoeForConditionalGeneration with this config.json"));
}

TEST_CASE("stored experts: a router of ERNIE 4.5 VL is transposed, and its biases are two rows") {
  const std::string router = "\"model.layers.1.mlp.gate.weight\": {\"shape\": ";
  CHECK(error_with("ernie4_5-vl", router + "[32, 6]", router + "[6, 32]")
            .ends_with("'model.layers.1.mlp.gate.weight': has the shape [6, 32], expected [32, 6] "
                       "from config.json"));
  const std::string bias =
      "\"model.layers.1.mlp.moe_statics.e_score_correction_bias\": {\"shape\": ";
  CHECK(error_with("ernie4_5-vl", bias + "[2, 6]", bias + "[1, 6]")
            .ends_with("'model.layers.1.mlp.moe_statics.e_score_correction_bias': has the shape "
                       "[1, 6], expected [2, 6] from config.json"));
}

}  // namespace fp8kv
