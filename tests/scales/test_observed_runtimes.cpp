// Compares the rules with observations of the runtimes themselves, in tests/runtimes/observed.json.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "json/json.h"
#include "scales/rules/model_families.h"
#include "scales/rules/runtime_choice.h"
#include "scales/rules/runtime_rules.h"
#include "scales/write/quant_block.h"
#include "support/places.h"
#include "support/temp_dir.h"

using namespace fp8kv;

namespace {

using Names = std::vector<std::string>;

const Names kA = {"k_scale", "v_scale"};
const Names kB = {"attn.k_scale", "attn.v_scale"};
const Names kP = {"k_proj.k_scale", "v_proj.v_scale"};
const Names kFused = {"kv_scale"};

Names operator+(Names a, const Names& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

enum class Block {
  none,
  cache,
  cache_per_head,
  no_strategy,
  not_symmetric,
  fp8,
  modelopt,
  gptq,
  awq,
  autoround,
  autoround_static,
  autoround_blocks,
  quantised
};

// A form of scales. Empty `names` stand for the portable form, whose names depend on the family.
struct Form {
  Names names;
  Block block = Block::none;
  Shape shape = {};
};

// The meaning of each name under "forms" in the file.
const std::map<std::string, Form>& forms() {
  static const std::map<std::string, Form> kForms = {
      {"tgi", {kFused + kA}},
      {"tgi-2028", {kFused}},
      {"vllm", {kA, Block::cache, {1}}},
      {"vllm-rocm", {kA, Block::fp8}},
      {"vllm-per-head", {kA, Block::cache_per_head, {2, 1, 1}}},
      {"vllm+kv_scale", {kA + kFused, Block::cache, {1}}},
      {"vllm, shape []", {kA, Block::cache}},
      {"A, no strategy", {kA, Block::no_strategy, {1}}},
      {"A, not symmetric", {kA, Block::not_symmetric, {1}}},
      {"A", {kA, Block::cache, {1}}},
      {"B", {kB, Block::cache, {1}}},
      {"C", {kA + kB, Block::cache, {1}}},
      {"P", {kP, Block::cache, {1}}},
      {"M", {kP, Block::modelopt}},
      {"gptq", {kA, Block::gptq, {1}}},
      {"awq", {kA, Block::awq, {1}}},
      {"auto-round", {kA, Block::autoround, {1}}},
      {"auto-round blocks", {kA, Block::autoround_blocks, {1}}},
      {"auto-round fp8", {kA, Block::autoround_static, {1}}},
      {"fp8-dynamic", {{}, Block::quantised, {1}}},
      {"fp8-block", {{}, Block::quantised, {1}}},
      {"fp8-static", {{}, Block::quantised, {1}}},
  };
  return kForms;
}

Names portable_form(const std::string& family) {
  const PortableNames names = portable_names(family);
  return names == PortableNames::both         ? kA + kB
         : names == PortableNames::apart      ? kA
         : names == PortableNames::parameters ? kB
                                              : kP;
}

// Renames the key, so that nobody reads it.
std::string without(std::string text, std::string_view key) {
  const size_t at = text.find(cat("\"", key, "\""));
  REQUIRE(at != text.npos);
  return text.insert(at + 1, "no ");
}

std::string block_text(Block block, const TensorMap& tensors) {
  switch (block) {
    case Block::none:
      return "";
    case Block::cache:
      return compressed_tensors_block(tensors, false);
    case Block::cache_per_head:
      return compressed_tensors_block(tensors, true);
    case Block::no_strategy:
      return without(compressed_tensors_block(tensors, false), "strategy");
    case Block::not_symmetric:
      return without(compressed_tensors_block(tensors, false), "symmetric");
    case Block::fp8:
      return fp8_block(tensors);
    case Block::modelopt:
      return R"({"quant_method": "modelopt", "quant_algo": "FP8",
                 "kv_cache_scheme": {"type": "float", "num_bits": 8, "dynamic": false}})";
    case Block::gptq:
      return R"({"quant_method": "gptq", "bits": 4, "group_size": 128})";
    case Block::awq:
      return R"({"quant_method": "awq", "bits": 4, "group_size": 128})";
    case Block::autoround:
      return R"({"quant_method": "auto-round", "packing_format": "auto_round:auto_gptq"})";
    case Block::autoround_static:
      return R"({"quant_method": "auto-round", "packing_format": "auto_round:fp8_static"})";
    case Block::autoround_blocks:
      return R"({"quant_method": "auto-round", "packing_format": "auto_round:fp8"})";
    case Block::quantised:
      break;
  }
  return R"({"quant_method": "compressed-tensors", "quantization_status": "compressed",
             "format": "float-quantized", "ignore": ["lm_head"],
             "config_groups": {"group_0": {"targets": ["Linear"], "weights":
                 {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": true}}},
             "kv_cache_scheme": {"type": "float", "num_bits": 8, "strategy": "tensor",
                                 "dynamic": false, "symmetric": true}})";
}

// Names of a layer's attention block and of its projections.
struct Attention {
  std::string layer = "model.layers.0.", block = "self_attn.";
  Names projections = {"q_proj", "k_proj", "v_proj", "o_proj"};
};

Attention attention_of(const std::string& family) {
  static const std::map<std::string, Attention> kOthers = {
      {"gpt2", {"transformer.h.0.", "attn.", {"c_attn", "c_proj"}}},
      {"gpt_bigcode", {"transformer.h.0.", "attn.", {"c_attn", "c_proj"}}},
      {"gpt_neox", {"gpt_neox.layers.0.", "attention.", {"query_key_value", "dense"}}},
      {"falcon", {"transformer.h.0.", "self_attention.", {"query_key_value", "dense"}}},
      {"bailing_moe", {"model.layers.0.", "attention.", {"query_key_value", "dense"}}},
      {"sarvam_moe", {"model.layers.0.", "attention.", {"query_key_value", "dense"}}},
      {"bailing_hybrid", {"model.layers.0.", "attention.", {"kv_b_proj", "dense"}}},
      {"internlm2", {"model.layers.0.", "attention.", {"wqkv", "wo"}}},
      {"baichuan", {"model.layers.0.", "self_attn.", {"W_pack", "o_proj"}}},
  };
  const auto found = kOthers.find(family);
  return found == kOthers.end() ? Attention{} : found->second;
}

// The tensors of a family's first layer, without scales.
TensorMap weights_of(const std::string& family) {
  TensorMap tensors;
  const auto [layer, attention, projections] = attention_of(family);
  const bool experts = family.find("moe") != family.npos || family.find("experts") != family.npos ||
                       family == "mixtral";
  Names names;
  for (const std::string& name : projections) names.push_back(cat(attention, name, ".weight"));
  names.push_back(experts ? "mlp.experts.0.up_proj.weight" : "mlp.up_proj.weight");
  for (const std::string& name : names) {
    tensors[layer + name] = {0, {layer + name, DType::bf16, {8, 8}, 0, 0}};
  }
  return tensors;
}

// The facts of a folder of this family and form. Only an index describes its weights.
FactSet facts_of(const std::string& family, const Form& form) {
  ModelFiles files{weights_of(family), Json::parse("{}", "config.json"), std::nullopt, {}};
  const std::string block = block_text(form.block, files.tensors);
  const Attention attention = attention_of(family);
  for (const std::string& scale : form.names.empty() ? portable_form(family) : form.names) {
    const std::string name = cat(attention.layer, attention.block, scale);
    const Shape shape = scale == "kv_scale" ? Shape{} : form.shape;
    files.tensors[name] = {0, {name, DType::f32, shape, 0, 0}};
  }
  files.config = Json::parse(
      cat(R"({"model_type": ")", family, R"(", "kv_cache_torch_dtype": "float8_e4m3fn")",
          block.empty() ? "" : cat(R"(, "quantization_config": )", block), "}"),
      "config.json");
  return runtime_facts(files);
}

RuntimeVerdict verdict_of(FactSet facts, const std::string& runtime, const std::string& version) {
  if (version == "PR 2028") {
    return runtime_verdict(facts, *choose_runtimes("tgi@pr-2028").at(0).column);
  }
  const auto parsed = parse_runtime_version(version);
  REQUIRE(parsed);
  const auto verdict = runtime_verdict(facts, runtime, *parsed);
  REQUIRE(verdict);
  return *verdict;
}

std::string result_of(const RuntimeRule& rule) {
  switch (rule.outcome) {
    case RuntimeOutcome::loads:
    case RuntimeOutcome::turns_on:
      return rule.rounded ? "rounded" : "exact";
    case RuntimeOutcome::ignores:
      return "1.0";
    case RuntimeOutcome::misreads:
      return "misread";
    case RuntimeOutcome::fails:
      return "error";
    case RuntimeOutcome::unknown:
    case RuntimeOutcome::note:
      break;
  }
  return "not known";
}

Json observed() {
  const std::string text = test::read_file(test::source_dir() / "tests/runtimes/observed.json");
  return Json::parse(text, "observed.json");
}

// The newest version of the runtime that was run.
std::string newest_seen(const std::string& runtime) {
  const Json file = observed();
  const Json list = file.at("observations");
  std::string newest = "0.0.0";
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].get_string("runtime", "") != runtime) continue;
    const std::string version = list[i].get_string("version", "");
    if (*parse_runtime_version(newest) < *parse_runtime_version(version)) newest = version;
  }
  return newest;
}

}  // namespace

TEST_CASE("runtimes: no rule says otherwise than what was seen") {
  const Json file = observed();
  const Json list = file.at("observations");
  CHECK(list.size() > 700);
  for (size_t i = 0; i < list.size(); ++i) {
    const Json& seen = list[i];
    const std::string runtime = seen.get_string("runtime", ""),
                      version = seen.get_string("version", ""),
                      family = seen.get_string("family", ""), form = seen.get_string("form", "");
    const FactSet facts = facts_of(family, forms().at(form));
    const RuntimeVerdict verdict = verdict_of(facts, runtime, version);
    CAPTURE(cat(runtime, " ", version, ", ", family, ", form ", form));
    CAPTURE(verdict.rule->sentence);
    CHECK(result_of(*verdict.rule) == seen.get_string("result", ""));
    if (const auto turned_on = seen.find("turns_on")) {
      CHECK((verdict.rule->outcome == RuntimeOutcome::turns_on) == turned_on->as_bool());
    }
  }
}

// A block that says something else has to be run again.
TEST_CASE("runtimes: the writer's blocks are those of the folders that were run") {
  const auto plain = [](std::string text) {
    std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
    return text;
  };
  const auto cache_alone = [](const std::string& ignore, const std::string& strategy) {
    return cat(R"({"quant_method":"compressed-tensors","format":"dense",)",
               R"("quantization_status":"frozen","config_groups":{},"ignore":[)", ignore,
               R"(],"kv_cache_scheme":{"num_bits":8,"type":"float","strategy":")", strategy,
               R"(","dynamic":false,"symmetric":true}})");
  };
  const TensorMap dense = weights_of("llama"), experts = weights_of("qwen3_moe");
  CHECK(plain(compressed_tensors_block(dense, false)) ==
        cache_alone(R"("lm_head","re:.*_proj$")", "tensor"));
  CHECK(plain(compressed_tensors_block(dense, true)) ==
        cache_alone(R"("lm_head","re:.*_proj$")", "attn_head"));
  CHECK(plain(compressed_tensors_block(experts, false)) ==
        cache_alone(R"("lm_head","re:.*_proj$","re:.*experts$")", "tensor"));
  CHECK(plain(fp8_block(dense)) ==
        R"({"quant_method":"fp8","activation_scheme":"dynamic","ignored_layers":["lm_head",)"
        R"("model.layers.0.mlp.up_proj","model.layers.0.self_attn.k_proj",)"
        R"("model.layers.0.self_attn.o_proj","model.layers.0.self_attn.q_proj",)"
        R"("model.layers.0.self_attn.v_proj"]})");
}

TEST_CASE("runtimes: what was seen names forms and results that the file explains") {
  const Json file = observed();
  const Json described = file.at("forms"), results = file.at("results");
  CHECK(described.size() == forms().size());
  for (const auto& [name, form] : forms()) CHECK(described.find(name));
  const Json list = file.at("observations");
  for (size_t i = 0; i < list.size(); ++i) {
    CHECK(described.find(list[i].get_string("form", "")));
    CHECK(results.find(list[i].get_string("result", "")));
    CHECK_FALSE(list[i].get_string("how", "").empty());
  }
}

TEST_CASE("runtimes: a rule begins and ends where a column does, and one said to be run was") {
  for (const RuntimeColumn& column : runtime_columns()) {
    for (const RuntimeRule& rule : column.rules) {
      const auto is_first = [&](const RuntimeVersion& version) {
        const auto all = runtime_columns();
        return std::any_of(all.begin(), all.end(), [&](const RuntimeColumn& other) {
          return other.rules.data() == column.rules.data() && other.first == version;
        });
      };
      CAPTURE(rule.sentence);
      CHECK((rule.since == RuntimeVersion{} || is_first(rule.since)));
      CHECK((rule.before == RuntimeRule{}.before || is_first(rule.before)));
      CHECK(std::string(rule.source).starts_with("run:") == (rule.basis == Basis::run));
    }
  }
}

TEST_CASE("runtimes: versions are read as runtimes write them") {
  CHECK(parse_runtime_version("0.32") == RuntimeVersion{0, 32, 0});
  CHECK(parse_runtime_version("v0.5.19") == RuntimeVersion{0, 5, 19});
  CHECK(parse_runtime_version("5") == RuntimeVersion{5, 0, 0});
  for (const char* text : {"", "v", "0.", ".1", "0.1.2.3", "main", "0.1rc1", "1234567"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_runtime_version(text));
  }
}

TEST_CASE("runtimes: the names of a portable folder lose nothing that other names would save") {
  // Checks the newest versions that were run, and a vLLM of a year earlier.
  const std::pair<std::string, std::string> runtimes[] = {
      {"vLLM", newest_seen("vLLM")}, {"vLLM", "0.24.0"}, {"SGLang", newest_seen("SGLang")}};
  CHECK(runtimes[0].second != "0.0.0");
  const auto form_of = [](PortableNames names) -> std::string {
    return names == PortableNames::both         ? "C"
           : names == PortableNames::apart      ? "A"
           : names == PortableNames::parameters ? "B"
                                                : "P";
  };
  const auto worth = [](const RuntimeRule& rule) {
    const bool used =
        rule.outcome == RuntimeOutcome::loads || rule.outcome == RuntimeOutcome::turns_on;
    return !used ? 0 : rule.rounded ? 1 : 2;
  };
  for (const ModelFamily& family : model_families()) {
    const std::string type(family.model_type), chosen = form_of(family.names);
    for (const auto& [runtime, version] : runtimes) {
      const auto worth_of = [&](const std::string& form) {
        return worth(*verdict_of(facts_of(type, forms().at(form)), runtime, version).rule);
      };
      for (const char* other : {"A", "B", "C", "P"}) {
        CAPTURE(cat(type, " in ", runtime, " ", version, ": ", chosen, " or ", other));
        CHECK(worth_of(chosen) >= worth_of(other));
      }
    }
  }
  CHECK(portable_names("olmo2") == PortableNames::both);
}
