#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "checkpoint/drafts/draft_layers.h"
#include "checkpoint/drafts/draft_model.h"
#include "checkpoint/model/read_model_config.h"
#include "support/expect_error.h"
#include "support/models/draft_golden.h"

namespace fp8kv {
namespace {

constexpr const char* kConfig = R"({"architectures": ["X"], "model_type": "llama",
  "num_hidden_layers": 2, "hidden_size": 4, "num_attention_heads": 2, "num_key_value_heads": 2)";

TensorMap tensors_of(const std::vector<std::string>& names) {
  TensorMap tensors;
  for (const std::string& name : names) tensors[name] = {0, {name, DType::bf16, {4, 4}, 0, 32}};
  return tensors;
}

std::vector<std::string> names_of(const std::vector<std::string>& tensors,
                                  const std::string& more) {
  std::vector<std::string> names;
  const Json config = Json::parse(kConfig + more + "}", "config.json");
  for (const DraftLayer& layer : find_draft_layers(tensors_of(tensors), config)) {
    names.push_back(std::string(layer.kind->name) + ": " + layer.name);
  }
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("draft layers: each kind is found by its tensors") {
  const std::string one = R"(, "num_nextn_predict_layers": 1)";
  CHECK(names_of({"model.layers.1.self_attn.k_proj.weight", "model.layers.2.eh_proj.weight",
                  "model.layers.2.self_attn.k_proj.weight"},
                 one) == Names{"nextn: model.layers.2"});
  CHECK(names_of({"mtp.fc.weight", "mtp.layers.0.self_attn.k_proj.weight",
                  "mtp.layers.1.self_attn.k_proj.weight"},
                 "") == Names{"mtp: mtp.layers.0", "mtp: mtp.layers.1"});
  CHECK(names_of({"mtp.layers.0.eh_proj.weight", "mtp.layers.0.mixer.k_proj.weight"}, one) ==
        Names{"mtp with its own entry: mtp.layers.0"});
  CHECK(names_of(
            {"model.mtp_layers.0.input_proj.weight", "model.mtp_layers.0.self_attn.k_proj.weight"},
            one) == Names{"mtp_layers: model.mtp_layers.0"});
  CHECK(names_of({"model.mtp.layers.0.input_proj.weight",
                  "model.mtp.layers.0.transformer_block.attn.wk_dv.weight"},
                 one) == Names{"model.mtp with blocks: model.mtp.layers.0"});
  CHECK(names_of({"model.mtp_block.0.self_attn.k_proj.weight", "model.mtp_linear_proj.0.weight"},
                 one) == Names{"mtp_block: model.mtp_block.0"});
  CHECK(names_of({"mtp.fc.weight", "mtp.layers.0.self_attn.k_proj.qweight"}, "") ==
        Names{"mtp: mtp.layers.0"});
}

TEST_CASE("draft layers: a layer behind the last counts only as config.json says") {
  const Names tensors = {"model.layers.2.eh_proj.weight", "model.layers.2.self_attn.k_proj.weight"};
  CHECK(names_of(tensors, "").empty());
  CHECK(names_of(tensors, R"(, "num_nextn_predict_layers": 0)").empty());
  CHECK(names_of({"model.layers.0.self_attn.k_proj.weight"}, R"(, "num_nextn_predict_layers": 1)")
            .empty());
}

TEST_CASE("draft layers: a tensor is of one by the whole of its name") {
  const DraftKind& kind = draft_kinds()[0];
  const std::vector<DraftLayer> layers = {{"mtp.layers.1", &kind, 1}};
  CHECK(draft_of(layers, "mtp.layers.1.self_attn.k_scale") == 0);
  CHECK(draft_of(layers, "mtp.layers.10.self_attn.k_scale") == 1);
  CHECK(draft_of(layers, "mtp.layers.1") == 1);
  CHECK(rest_in(layers[0], "mtp.layers.1.self_attn.k_scale") == "self_attn.k_scale");
}

TEST_CASE("draft model: a checkpoint without one of its tensors says which") {
  const test::DraftGolden golden("glm4-moe");
  const ModelConfig config = read_model_config(golden.checkpoint);
  DraftLayer layer = find_draft_layers(golden.checkpoint.tensors(), golden.checkpoint.config())[0];
  CHECK(read_draft_model(golden.checkpoint, config, layer).index == 3);
  DraftKind other = *layer.kind;
  other.entry.embedding_norm = "{}.another";
  layer.kind = &other;
  CHECK(test::error_of([&] {
          read_draft_model(golden.checkpoint, config, layer);
        }).find("model.layers.3.another.weight") != std::string::npos);
  other.computed = {};
  CHECK(test::error_of([&] {
          read_draft_model(golden.checkpoint, config, layer);
        }).find("not computed here") != std::string::npos);
}

}  // namespace fp8kv
