#include <doctest/doctest.h>

#include "checkpoint/describe_checkpoint.h"
#include "support/models/tiny_checkpoint.h"
#include "support/temp_dir.h"

namespace fp8kv {

TEST_CASE("describe_checkpoint: a stored K projection of another shape makes layers unclear") {
  const test::TempDir folder;
  test::write_tiny_checkpoint(folder / "model", test::tiny_config());
  CHECK_FALSE(describe_model(Checkpoint::open(folder / "model")).unclear);
  const std::string text = test::tiny_config_json(test::tiny_config());
  folder.write("model/config.json", json_with_member(text, "head_dim", "16"));
  const ModelDescription model = describe_model(Checkpoint::open(folder / "model"));
  REQUIRE(model.unclear);
  CHECK(
      std::string(model.unclear->what()) ==
      "'model.layers.0.self_attn.k_proj.weight': has 16 rows, but config.json makes it 2 KV heads "
      "of 16");
  CHECK(model.layer(1).mixing == Mixing::unknown);
  CHECK(model.n_kv_heads() == 2);
}

TEST_CASE("describe_checkpoint: a K projection behind the last layer makes layers unclear") {
  const test::TempDir folder;
  test::write_tiny_checkpoint(folder / "model", test::tiny_config());
  const std::string text =
      json_with_member(test::tiny_config_json(test::tiny_config()), "num_hidden_layers", "1");
  folder.write("model/config.json", text);
  const ModelDescription model = describe_model(Checkpoint::open(folder / "model"));
  REQUIRE(model.unclear);
  CHECK(std::string(model.unclear->what()) ==
        "'model.layers.1.self_attn.k_proj.weight': is of layer 1, but config.json makes it 1 "
        "layer");
  // The tensor is allowed if the config declares a draft layer after the model's layers.
  folder.write("model/config.json", json_with_member(text, "num_nextn_predict_layers", "1"));
  CHECK_FALSE(describe_model(Checkpoint::open(folder / "model")).unclear);
}

}  // namespace fp8kv
