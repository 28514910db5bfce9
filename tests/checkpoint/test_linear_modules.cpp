#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "checkpoint/linear_modules.h"
#include "support/regex_matches.h"

namespace fp8kv {
namespace {

using Strings = std::vector<std::string>;

TensorMap tensors_of(const std::map<std::string, Shape>& shapes) {
  TensorMap tensors;
  for (const auto& [name, shape] : shapes) {
    tensors[name] = {0, {name, DType::bf16, shape, 0, 0}};
  }
  return tensors;
}

TensorMap mixture() {
  return tensors_of({{"model.embed_tokens.weight", {64, 8}},
                     {"model.layers.0.block_sparse_moe.experts.0.w1.weight", {8, 8}},
                     {"model.layers.0.block_sparse_moe.experts.1.w2.weight", {8, 8}},
                     {"model.layers.0.block_sparse_moe.gate.weight", {2, 8}},
                     {"model.layers.0.input_layernorm.weight", {8}},
                     {"model.layers.0.self_attn.k_proj.bias", {8}},
                     {"model.layers.0.self_attn.k_proj.weight", {8, 8}},
                     {"model.layers.0.self_attn.k_scale", {}},
                     {"vision.merger.mlp.0.weight", {8, 8}},
                     {"lm_head.weight", {64, 8}}});
}

TEST_CASE("linear_modules: every module with a matrix, but no norm, bias or embedding") {
  CHECK(linear_modules(mixture()) ==
        Strings{"lm_head", "model.layers.0.block_sparse_moe.experts.0.w1",
                "model.layers.0.block_sparse_moe.experts.1.w2",
                "model.layers.0.block_sparse_moe.gate", "model.layers.0.self_attn.k_proj",
                "vision.merger.mlp.0"});
}

TEST_CASE("linear_modules: experts are known by their names") {
  CHECK(has_experts(mixture()));
  CHECK(has_experts(tensors_of({{"model.layers.0.mlp.experts.gate_up_proj", {4, 8, 8}}})));
  CHECK_FALSE(
      has_experts(tensors_of({{"model.layers.0.mlp.shared_expert.up_proj.weight", {8, 8}}})));
}

TEST_CASE(
    "ignore_patterns: two entries for most models, a name each for what is called otherwise") {
  CHECK(ignore_patterns(Strings{"model.layers.0.mlp.up_proj", "model.layers.0.self_attn.q_proj"},
                        false) == Strings{"lm_head", "re:.*_proj$"});
  CHECK(ignore_patterns(linear_modules(mixture()), true) ==
        Strings{"lm_head", "re:.*\\.gate$", "re:.*\\.mlp\\.0$", "re:.*\\.w1$", "re:.*\\.w2$",
                "re:.*_proj$", "re:.*experts$"});
}

TEST_CASE("ignore_patterns: cover every linear layer and the experts, and no attention module") {
  const Strings modules = linear_modules(mixture());
  const Strings patterns = ignore_patterns(modules, true);
  const auto covered = [&](const std::string& module) {
    for (const std::string& entry : patterns) {
      if (entry == module) return true;
      if (entry.starts_with("re:") && test::regex_matches(entry.substr(3), module)) return true;
    }
    return false;
  };
  for (const std::string& module : modules) {
    CAPTURE(module);
    CHECK(covered(module));
    CHECK(covered("model.language_model." + module) == (module != "lm_head"));
  }
  CHECK(covered("model.layers.0.block_sparse_moe.experts"));
  CHECK(covered("model.layers.0.self_attn.qkv_proj"));
  for (const char* attention : {"model.layers.0.self_attn.attn", "model.layers.0.self_attn",
                                "model.layers.0.attn", "model.layers.0.mixer.attn"}) {
    CAPTURE(attention);
    CHECK_FALSE(covered(attention));
  }
}

}  // namespace
}  // namespace fp8kv
