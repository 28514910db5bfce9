#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "base/text.h"
#include "formats/safetensors.h"
#include "scales/rules/runtime_rules.h"

namespace fp8kv {
namespace {

using Strings = std::vector<std::string>;

// A model of one layer with these scale tensors. `config` adds members to its config.json.
ModelFiles model(const std::vector<std::pair<std::string, Shape>>& scales,
                 const std::string& config = "") {
  ModelFiles files{
      {},
      Json::parse("{\"model_type\": \"llama\"" + (config.empty() ? "" : ", " + config) + "}",
                  "config.json"),
      std::nullopt,
      {"config.json"}};
  const auto add = [&](const std::string& name, const Shape& shape, DType dtype) {
    files.tensors[name] = {0, {name, dtype, shape, 0, 0}};
  };
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    add(cat("model.layers.0.self_attn.", name, ".weight"), {8, 8}, DType::bf16);
  }
  for (const auto& [name, shape] : scales) {
    add("model.layers.0.self_attn." + name, shape, DType::f32);
  }
  return files;
}

const std::vector<std::pair<std::string, Shape>> kFused = {{"kv_scale", {}}};
const std::vector<std::pair<std::string, Shape>> kApart = {{"k_scale", {}}, {"v_scale", {}}};
const std::vector<std::pair<std::string, Shape>> kUnion = {
    {"kv_scale", {}}, {"k_scale", {}}, {"v_scale", {}}};

std::string compressed_tensors(
    const std::string& ignore,
    const std::string& more = R"(, "strategy": "tensor", "symmetric": true)") {
  return cat(
      R"("quantization_config": {"quant_method": "compressed-tensors", "config_groups": {},)",
      R"( "quantization_status": "frozen", "ignore": )", ignore,
      R"(, "kv_cache_scheme": {"type": "float", "num_bits": 8, "dynamic": false)", more, "}}");
}
const std::string kCovered = compressed_tensors(R"(["lm_head", "re:.*_proj$"])");

// The outcome in one runtime, without notes.
RuntimeOutcome outcome(const ModelFiles& files, const std::string& runtime,
                       const std::string& versions) {
  for (const RuntimeVerdict& verdict : runtime_verdicts(runtime_facts(files))) {
    if (verdict.column->runtime == runtime && versions_text(*verdict.column) == versions) {
      return verdict.rule->outcome;
    }
  }
  FAIL("no such column");
  return RuntimeOutcome::unknown;
}

RuntimeOutcome tgi(const ModelFiles& files) {
  return outcome(files, "TGI", "3.0 and newer");
}
RuntimeOutcome branch(const ModelFiles& files) {
  return outcome(files, "TGI", "branch of PR 2028");
}
RuntimeOutcome old_vllm(const ModelFiles& files) {
  return outcome(files, "vLLM", "0.7.2 to 0.11");
}
RuntimeOutcome vllm(const ModelFiles& files) {
  return outcome(files, "vLLM", "0.32 and newer");
}
RuntimeOutcome sglang(const ModelFiles& files) {
  return outcome(files, "SGLang", "0.5.19 and newer");
}

RuntimeOutcome transformers(const ModelFiles& files) {
  return outcome(files, "transformers", "5 to 5.23");
}
RuntimeOutcome newest_transformers(const ModelFiles& files) {
  return outcome(files, "transformers", "5.24 and newer");
}

// The behaviour of transformers 5.23.0 with compressed-tensors 0.20.0; see the rules.
TEST_CASE("runtimes: transformers takes what llm-compressor would have written") {
  const std::vector<std::pair<std::string, Shape>> as_written = {{"k_scale", {1}},
                                                                 {"v_scale", {1}}};
  CHECK(transformers(model(as_written, kCovered)) == RuntimeOutcome::loads);
  CHECK(transformers(model(kApart, kCovered)) == RuntimeOutcome::fails);
  CHECK(transformers(model({}, kCovered)) == RuntimeOutcome::misreads);
  CHECK(transformers(model(kApart)) == RuntimeOutcome::ignores);
  ModelFiles single = model(as_written, kCovered);
  single.names.push_back("model.safetensors");
  CHECK(transformers(single) == RuntimeOutcome::loads);
  single.names.push_back("model.safetensors.index.json");
  CHECK(transformers(single) == RuntimeOutcome::misreads);
}

// Transformers 5.24 renamed the caches of its attention, and compressed-tensors 0.20 looks for the
// old name.
TEST_CASE("runtimes: transformers 5.24 drops the scales that 5.23 took") {
  const std::vector<std::pair<std::string, Shape>> as_written = {{"k_scale", {1}},
                                                                 {"v_scale", {1}}};
  CHECK(newest_transformers(model(as_written, kCovered)) == RuntimeOutcome::ignores);
  CHECK(newest_transformers(model(kApart, kCovered)) == RuntimeOutcome::ignores);
  CHECK(newest_transformers(model({}, kCovered)) == RuntimeOutcome::ignores);
}

TEST_CASE("runtimes: every column ends in the one rule that always holds") {
  for (const RuntimeColumn& column : runtime_columns()) {
    CAPTURE(column.runtime);
    CAPTURE(versions_text(column));
    size_t always = 0, last = 0;
    const std::vector<const RuntimeRule*> rules = rules_of(column);
    for (size_t i = 0; i < rules.size(); ++i) {
      const RuntimeRule& rule = *rules[i];
      CHECK(rule.sentence[0] != '\0');
      CHECK(rule.source[0] != '\0');
      if (rule.outcome == RuntimeOutcome::note) continue;
      last = i;
      const bool holds_always = rule.with == FactSet{} && rule.without == FactSet{} &&
                                rule.any == FactSet{} && rule.families == FamilySet{} &&
                                rule.not_of == FamilySet{};
      always += holds_always;
    }
    CHECK(always == 1);
    const RuntimeRule& end = *rules[last];
    CHECK(end.with == FactSet{});
    CHECK(end.without == FactSet{});
    CHECK(end.any == FactSet{});
    CHECK(end.families == FamilySet{});
    CHECK(end.not_of == FamilySet{});
  }
}

TEST_CASE("runtimes: every set of facts has one verdict per column") {
  Rng rng(3);
  for (int round = 0; round < 500; ++round) {
    FactSet facts;
    for (unsigned fact = 0; fact < static_cast<unsigned>(Fact::count); ++fact) {
      facts.add(static_cast<Fact>(fact), rng.next() % 3 == 0);
    }
    facts.set_family(static_cast<Family>(rng.next() % kFamilyCount));
    const auto verdicts = runtime_verdicts(facts);
    REQUIRE(verdicts.size() == runtime_columns().size());
    for (const RuntimeVerdict& verdict : verdicts) {
      CHECK(verdict.rule->outcome != RuntimeOutcome::note);
      CHECK(facts.has_all(verdict.rule->with));
      CHECK_FALSE(facts.has_any(verdict.rule->without));
      CHECK_FALSE(verdict.rule->not_of.has(facts.family()));
    }
  }
}

TEST_CASE("runtimes: kv_scale and kv_cache_torch_dtype in a plain model") {
  const ModelFiles files = model(kFused, R"("kv_cache_torch_dtype": "float8_e4m3fn")");
  CHECK(branch(files) == RuntimeOutcome::loads);
  CHECK(tgi(files) == RuntimeOutcome::loads);
  CHECK(old_vllm(files) == RuntimeOutcome::ignores);
  CHECK(vllm(files) == RuntimeOutcome::fails);
  CHECK(sglang(files) == RuntimeOutcome::ignores);
  CHECK(branch(model(kFused)) == RuntimeOutcome::fails);
}

TEST_CASE("runtimes: TGI's branch wants a kv_scale without dimensions, and three models alone") {
  const std::string dtype = R"("kv_cache_torch_dtype": "float8_e4m3fn")";
  CHECK(branch(model({{"kv_scale", {1}}}, dtype)) == RuntimeOutcome::fails);
  ModelFiles qwen = model(kFused, dtype);
  qwen.config = Json::parse(R"({"model_type": "qwen2", )" + dtype + "}", "config.json");
  CHECK(branch(qwen) == RuntimeOutcome::fails);
}

TEST_CASE("runtimes: k_scale and v_scale in a plain model") {
  CHECK(branch(model(kApart)) == RuntimeOutcome::ignores);
  CHECK(tgi(model(kApart)) == RuntimeOutcome::loads);
  CHECK(old_vllm(model(kApart)) == RuntimeOutcome::ignores);
  CHECK(vllm(model(kApart)) == RuntimeOutcome::fails);
}

TEST_CASE("runtimes: k_scale and v_scale with a block of compressed-tensors for the cache") {
  const ModelFiles files = model(kApart, kCovered);
  CHECK(tgi(files) == RuntimeOutcome::turns_on);
  CHECK(old_vllm(files) == RuntimeOutcome::loads);
  CHECK(vllm(files) == RuntimeOutcome::turns_on);
  CHECK(sglang(files) == RuntimeOutcome::loads);
}

TEST_CASE("runtimes: TGI fails where `ignore` misses a linear layer, vLLM does not") {
  const ModelFiles files = model(kApart, compressed_tensors("[]"));
  CHECK(tgi(files) == RuntimeOutcome::fails);
  CHECK(old_vllm(files) == RuntimeOutcome::loads);
  CHECK(vllm(files) == RuntimeOutcome::turns_on);
  CHECK(tgi(model(kApart, compressed_tensors(R"(["Linear"])"))) == RuntimeOutcome::turns_on);
  CHECK(tgi(model(kApart, compressed_tensors(R"(["re:.*(q|k|v)_proj"])"))) ==
        RuntimeOutcome::unknown);
}

TEST_CASE("runtimes: an `ignore` that covers the attention leaves old vLLM without scales") {
  const ModelFiles files = model(kApart, compressed_tensors(R"(["re:.*"])"));
  CHECK(tgi(files) == RuntimeOutcome::turns_on);
  CHECK(old_vllm(files) == RuntimeOutcome::ignores);
  CHECK(vllm(files) == RuntimeOutcome::turns_on);
}

TEST_CASE("runtimes: the class Linear in `ignore` does not cover the attention") {
  const ModelFiles files = model(kApart, compressed_tensors(R"(["Linear"])"));
  CHECK(old_vllm(files) == old_vllm(model(kApart, compressed_tensors("[]"))));
  CHECK(old_vllm(files) == RuntimeOutcome::loads);
  CHECK(old_vllm(model(kApart, compressed_tensors(R"(["Linear", "re:.*attn$"])"))) ==
        RuntimeOutcome::ignores);
}

TEST_CASE("runtimes: kv_scale beside a config is half read, and a union is misread") {
  CHECK(tgi(model(kFused, kCovered)) == RuntimeOutcome::loads);
  CHECK(old_vllm(model(kFused, kCovered)) == RuntimeOutcome::loads);
  CHECK(vllm(model(kFused, kCovered)) == RuntimeOutcome::misreads);
  CHECK(tgi(model(kUnion, kCovered)) == RuntimeOutcome::turns_on);
  CHECK(old_vllm(model(kUnion, kCovered)) == RuntimeOutcome::misreads);
  CHECK(vllm(model(kUnion, kCovered)) == RuntimeOutcome::misreads);
  CHECK(sglang(model(kUnion, kCovered)) == RuntimeOutcome::misreads);
}

TEST_CASE("runtimes: one scale per head is read by today's vLLM alone") {
  const std::string config =
      compressed_tensors(R"(["re:.*_proj$"])", R"(, "strategy": "attn_head", "symmetric": true)");
  const ModelFiles files = model({{"k_scale", {2, 1, 1}}, {"v_scale", {2, 1, 1}}}, config);
  CHECK(tgi(files) == RuntimeOutcome::fails);
  CHECK(old_vllm(files) == RuntimeOutcome::fails);
  CHECK(vllm(files) == RuntimeOutcome::turns_on);
  CHECK(sglang(files) == RuntimeOutcome::ignores);
}

TEST_CASE("runtimes: vLLM stops at a scheme without a strategy, or that is not symmetric") {
  const auto scheme = [](const std::string& more) {
    return model({{"k_scale", {1}}, {"v_scale", {1}}}, compressed_tensors("[]", more));
  };
  for (const char* more :
       {"", R"(, "strategy": "tensor")", R"(, "symmetric": true)",
        R"(, "strategy": "channel", "symmetric": true)", R"(, "strategy": null, "symmetric": true)",
        R"(, "strategy": "tensor", "symmetric": false)"}) {
    CAPTURE(more);
    CHECK(vllm(scheme(more)) == RuntimeOutcome::fails);
    CHECK(old_vllm(scheme(more)) == RuntimeOutcome::fails);
  }
  // compressed-tensors, and so transformers, also accepts a scheme without "strategy".
  CHECK(transformers(scheme("")) == RuntimeOutcome::loads);
  CHECK(sglang(scheme(R"(, "symmetric": true)")) == RuntimeOutcome::ignores);
  CHECK(sglang(scheme(R"(, "strategy": "tensor")")) == RuntimeOutcome::loads);
}

TEST_CASE("runtimes: a block without scales turns FP8 on with 1") {
  CHECK(vllm(model({}, kCovered)) == RuntimeOutcome::turns_on);
  CHECK(tgi(model({}, kCovered)) == RuntimeOutcome::turns_on);
  CHECK(old_vllm(model({}, kCovered)) == RuntimeOutcome::ignores);
  CHECK(vllm(model({})) == RuntimeOutcome::ignores);
}

TEST_CASE("runtimes: K without V, and V without K") {
  const std::string fp8 = R"("quantization_config": {"quant_method": "fp8"})";
  CHECK(vllm(model({{"k_scale", {}}}, fp8)) == RuntimeOutcome::loads);
  CHECK(vllm(model({{"v_scale", {}}}, fp8)) == RuntimeOutcome::fails);
  CHECK(vllm(model({{"k_scale", {}}}, kCovered)) == RuntimeOutcome::misreads);
  CHECK(tgi(model({{"k_scale", {}}})) == RuntimeOutcome::ignores);
}

TEST_CASE("runtimes: ModelOpt without quant_algo fails in vLLM, with it FP8 is turned on") {
  const std::vector<std::pair<std::string, Shape>> names = {{"k_proj.k_scale", {}},
                                                            {"v_proj.v_scale", {}}};
  const std::string half = R"("quantization_config": {"quant_method": "modelopt",
      "kv_cache_scheme": {"type": "float", "num_bits": 8, "dynamic": false})";
  CHECK(vllm(model(names, half + "}")) == RuntimeOutcome::fails);
  CHECK(vllm(model(names, half + R"(, "quant_algo": "FP8"})")) == RuntimeOutcome::turns_on);
  CHECK(tgi(model(names, half + "}")) == RuntimeOutcome::ignores);
}

TEST_CASE("runtimes: a block for the cache alone stops vLLM up to 0.11 where there are experts") {
  ModelFiles files = model(kApart, kCovered);
  CHECK(old_vllm(files) == RuntimeOutcome::loads);
  const std::string expert = "model.layers.0.mlp.experts.0.up_proj.weight";
  files.tensors[expert] = {0, {expert, DType::bf16, {8, 8}, 0, 0}};
  for (const char* ignore : {R"(["re:.*_proj$"])", R"(["re:.*_proj$", "re:.*experts$"])"}) {
    CAPTURE(ignore);
    files.config = Json::parse("{" + compressed_tensors(ignore) + "}", "config.json");
    CHECK(old_vllm(files) == RuntimeOutcome::fails);
    CHECK(outcome(files, "vLLM", "0.12 to 0.14") == RuntimeOutcome::loads);
  }
}

TEST_CASE("runtimes: the FP8 cache of sparse latent attention has no use for scales") {
  for (const char* type : {"deepseek_v32", "glm_moe_dsa"}) {
    CAPTURE(std::string(type));
    ModelFiles files = model({{"k_proj.k_scale", {}}, {"v_proj.v_scale", {}}});
    files.config = Json::parse(cat(R"({"model_type": ")", type, R"(", )", kCovered, "}"), "config");
    CHECK(vllm(files) == RuntimeOutcome::ignores);
    CHECK(sglang(files) == RuntimeOutcome::ignores);
  }
}

TEST_CASE("runtimes: facts have distinct names") {
  FactSet all;
  for (unsigned fact = 0; fact < static_cast<unsigned>(Fact::count); ++fact) {
    all.add(static_cast<Fact>(fact));
  }
  const Strings names = all.names();
  CHECK(std::set<std::string>(names.begin(), names.end()).size() ==
        static_cast<size_t>(Fact::count));
  CHECK(fact_name(Fact::with_model_type) == std::string("with_model_type"));
  CHECK(fact_name(Fact::scales) == std::string("scales"));
}

}  // namespace
}  // namespace fp8kv
