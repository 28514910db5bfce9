#include <set>
#include <string>

#include <doctest/doctest.h>

#include "quant/changed_values.h"

namespace fp8kv {
namespace {

std::string change(const std::string& tensor, const std::set<std::string>& others = {}) {
  const TensorEntry found;
  return change_by(
      tensor, [&](const std::string& name) { return others.contains(name) ? &found : nullptr; });
}

std::string transforms(const std::string& location) {
  return change_at_run_time(Json::parse(
      R"({"transform_config": {"config_groups": {"R1": {"apply": [{"location": "weight_output"},
      {"location": ")" +
          location + R"("}]}}}})",
      "c.json"));
}

}  // namespace

TEST_CASE("changed_values: tensors that do something to what a matrix is given, or gives") {
  CHECK(change("l.q_proj.pre_quant_scale") == "multiplies what the matrix is given");
  CHECK(change("l.q_proj.weight_quantizer._svdquant_lora_a") ==
        "is a part of the matrix that its codes are without");
  CHECK(change("l.mlp.act.scales") == "divides what an activation gives");
  // In GPTQ and AWQ, `scales` belong to the codes.
  CHECK(change("l.q_proj.scales", {"l.q_proj.qweight"}) == "");
  for (const char* name : {"l.q_proj.weight_scale", "l.q_proj.input_scale", "l.q_proj.weight",
                           "l.mlp.experts.down_proj_scales", "l.attn.k_scale"}) {
    CHECK(change(name) == "");
  }
}

TEST_CASE("changed_values: transforms that are in the weights already are none") {
  CHECK(change_at_run_time({}) == "");
  CHECK(change_at_run_time(Json::parse(R"({"transform_config": {}})", "c.json")) == "");
  CHECK(change_at_run_time(Json::parse(R"({"transform_config": null})", "c.json")) == "");
  CHECK(transforms("weight_input") == "");
  for (const char* location : {"input", "output", "k_cache", "q_attn"}) {
    CHECK(transforms(location) ==
          "c.json: transform_config.config_groups.R1.apply[1]: changes values at the location '" +
              std::string(location) + "' while the model runs");
  }
}

}  // namespace fp8kv
