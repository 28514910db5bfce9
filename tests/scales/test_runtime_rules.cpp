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

// A model of one layer with these scale tensors, and what its config says beside.
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

std::string compressed_tensors(const std::string& ignore, const std::string& more = "") {
  return cat(
      R"("quantization_config": {"quant_method": "compressed-tensors", "config_groups": {},)",
      R"( "quantization_status": "frozen", "ignore": )", ignore,
      R"(, "kv_cache_scheme": {"type": "float", "num_bits": 8, "dynamic": false)", more, "}}");
}
const std::string kCovered = compressed_tensors(R"(["lm_head", "re:.*_proj$"])");

// What one runtime does; "note" lines are left out.
Outcome outcome(const ModelFiles& files, const std::string& runtime, const std::string& versions) {
  for (const RuntimeVerdict& verdict : runtime_verdicts(runtime_facts(files))) {
    if (verdict.column->runtime == runtime && verdict.column->versions == versions) {
      return verdict.rule->outcome;
    }
  }
  FAIL("no such column");
  return Outcome::unknown;
}

Outcome tgi(const ModelFiles& files) {
  return outcome(files, "TGI", "2.4 and newer");
}
Outcome branch(const ModelFiles& files) {
  return outcome(files, "TGI", "branch of PR 2028");
}
Outcome old_vllm(const ModelFiles& files) {
  return outcome(files, "vLLM", "0.7.2 to 0.10");
}
Outcome vllm(const ModelFiles& files) {
  return outcome(files, "vLLM", "main of August 2026");
}
Outcome sglang(const ModelFiles& files) {
  return outcome(files, "SGLang", "main of August 2026");
}

Outcome transformers(const ModelFiles& files) {
  return outcome(files, "transformers", "4.45 to 5");
}

// As transformers 5.23.0 with compressed-tensors 0.20.0 behaved: see the rules.
TEST_CASE("runtimes: transformers takes what llm-compressor would have written") {
  const std::vector<std::pair<std::string, Shape>> as_written = {{"k_scale", {1}},
                                                                 {"v_scale", {1}}};
  CHECK(transformers(model(as_written, kCovered)) == Outcome::loads);
  CHECK(transformers(model(kApart, kCovered)) == Outcome::fails);
  CHECK(transformers(model({}, kCovered)) == Outcome::misreads);
  CHECK(transformers(model(kApart)) == Outcome::ignores);
  ModelFiles single = model(as_written, kCovered);
  single.names.push_back("model.safetensors");
  CHECK(transformers(single) == Outcome::loads);
  single.names.push_back("model.safetensors.index.json");
  CHECK(transformers(single) == Outcome::misreads);
}

TEST_CASE("runtimes: every column ends in the one rule that always holds") {
  for (const RuntimeColumn& column : runtime_columns()) {
    CAPTURE(column.runtime);
    CAPTURE(column.versions);
    size_t always = 0, last = 0;
    for (size_t i = 0; i < column.rules.size(); ++i) {
      const RuntimeRule& rule = column.rules[i];
      CHECK(rule.sentence[0] != '\0');
      CHECK(rule.source[0] != '\0');
      if (rule.outcome == Outcome::note) continue;
      last = i;
      const bool holds_always = rule.with.names().empty() && rule.without.names().empty();
      always += holds_always;
    }
    CHECK(always == 1);
    const RuntimeRule& end = column.rules[last];
    CHECK(end.with.names().empty());
    CHECK(end.without.names().empty());
  }
}

TEST_CASE("runtimes: every set of facts has one verdict per column") {
  Rng rng(3);
  for (int round = 0; round < 500; ++round) {
    FactSet facts;
    for (unsigned fact = 0; fact < static_cast<unsigned>(Fact::count); ++fact) {
      facts.add(static_cast<Fact>(fact), rng.next() % 3 == 0);
    }
    const auto verdicts = runtime_verdicts(facts);
    REQUIRE(verdicts.size() == runtime_columns().size());
    for (const RuntimeVerdict& verdict : verdicts) {
      CHECK(verdict.rule->outcome != Outcome::note);
      CHECK(facts.has_all(verdict.rule->with));
      CHECK_FALSE(facts.has_any(verdict.rule->without));
    }
  }
}

TEST_CASE("runtimes: kv_scale and kv_cache_torch_dtype in a plain model") {
  const ModelFiles files = model(kFused, R"("kv_cache_torch_dtype": "float8_e4m3fn")");
  CHECK(branch(files) == Outcome::loads);
  CHECK(tgi(files) == Outcome::loads);
  CHECK(old_vllm(files) == Outcome::ignores);
  CHECK(vllm(files) == Outcome::fails);
  CHECK(sglang(files) == Outcome::ignores);
  CHECK(branch(model(kFused)) == Outcome::fails);
}

TEST_CASE("runtimes: TGI's branch wants a kv_scale without dimensions, and three models alone") {
  const std::string dtype = R"("kv_cache_torch_dtype": "float8_e4m3fn")";
  CHECK(branch(model({{"kv_scale", {1}}}, dtype)) == Outcome::fails);
  ModelFiles qwen = model(kFused, dtype);
  qwen.config = Json::parse(R"({"model_type": "qwen2", )" + dtype + "}", "config.json");
  CHECK(branch(qwen) == Outcome::fails);
}

TEST_CASE("runtimes: k_scale and v_scale in a plain model") {
  CHECK(branch(model(kApart)) == Outcome::ignores);
  CHECK(tgi(model(kApart)) == Outcome::loads);
  CHECK(old_vllm(model(kApart)) == Outcome::ignores);
  CHECK(vllm(model(kApart)) == Outcome::fails);
}

TEST_CASE("runtimes: k_scale and v_scale with a block of compressed-tensors for the cache") {
  const ModelFiles files = model(kApart, kCovered);
  CHECK(tgi(files) == Outcome::turns_on);
  CHECK(old_vllm(files) == Outcome::loads);
  CHECK(vllm(files) == Outcome::turns_on);
  CHECK(sglang(files) == Outcome::loads);
}

TEST_CASE("runtimes: TGI fails where `ignore` misses a linear layer, vLLM does not") {
  const ModelFiles files = model(kApart, compressed_tensors("[]"));
  CHECK(tgi(files) == Outcome::fails);
  CHECK(old_vllm(files) == Outcome::loads);
  CHECK(vllm(files) == Outcome::turns_on);
  CHECK(tgi(model(kApart, compressed_tensors(R"(["Linear"])"))) == Outcome::turns_on);
  CHECK(tgi(model(kApart, compressed_tensors(R"(["re:.*(q|k|v)_proj"])"))) == Outcome::unknown);
}

TEST_CASE("runtimes: an `ignore` that covers the attention leaves old vLLM without scales") {
  const ModelFiles files = model(kApart, compressed_tensors(R"(["re:.*"])"));
  CHECK(tgi(files) == Outcome::turns_on);
  CHECK(old_vllm(files) == Outcome::ignores);
  CHECK(vllm(files) == Outcome::turns_on);
}

TEST_CASE("runtimes: kv_scale beside a config is half read, and a union is misread") {
  CHECK(tgi(model(kFused, kCovered)) == Outcome::loads);
  CHECK(old_vllm(model(kFused, kCovered)) == Outcome::loads);
  CHECK(vllm(model(kFused, kCovered)) == Outcome::misreads);
  CHECK(tgi(model(kUnion, kCovered)) == Outcome::turns_on);
  CHECK(old_vllm(model(kUnion, kCovered)) == Outcome::misreads);
  CHECK(vllm(model(kUnion, kCovered)) == Outcome::misreads);
  CHECK(sglang(model(kUnion, kCovered)) == Outcome::misreads);
}

TEST_CASE("runtimes: one scale per head is read by today's vLLM alone") {
  const std::string config =
      compressed_tensors(R"(["re:.*_proj$"])", R"(, "strategy": "attn_head")");
  const ModelFiles files = model({{"k_scale", {2, 1, 1}}, {"v_scale", {2, 1, 1}}}, config);
  CHECK(tgi(files) == Outcome::fails);
  CHECK(old_vllm(files) == Outcome::fails);
  CHECK(vllm(files) == Outcome::turns_on);
  CHECK(sglang(files) == Outcome::unknown);
}

TEST_CASE("runtimes: a block without scales turns FP8 on with 1") {
  CHECK(vllm(model({}, kCovered)) == Outcome::turns_on);
  CHECK(tgi(model({}, kCovered)) == Outcome::turns_on);
  CHECK(old_vllm(model({}, kCovered)) == Outcome::ignores);
  CHECK(vllm(model({})) == Outcome::ignores);
}

TEST_CASE("runtimes: K without V, and V without K") {
  const std::string fp8 = R"("quantization_config": {"quant_method": "fp8"})";
  CHECK(vllm(model({{"k_scale", {}}}, fp8)) == Outcome::loads);
  CHECK(vllm(model({{"v_scale", {}}}, fp8)) == Outcome::fails);
  CHECK(vllm(model({{"k_scale", {}}}, kCovered)) == Outcome::misreads);
  CHECK(tgi(model({{"k_scale", {}}})) == Outcome::ignores);
}

TEST_CASE("runtimes: ModelOpt without quant_algo fails in vLLM, with it FP8 is turned on") {
  const std::vector<std::pair<std::string, Shape>> names = {{"k_proj.k_scale", {}},
                                                            {"v_proj.v_scale", {}}};
  const std::string half = R"("quantization_config": {"quant_method": "modelopt",
      "kv_cache_scheme": {"type": "float", "num_bits": 8, "dynamic": false})";
  CHECK(vllm(model(names, half + "}")) == Outcome::fails);
  CHECK(vllm(model(names, half + R"(, "quant_algo": "FP8"})")) == Outcome::turns_on);
  CHECK(tgi(model(names, half + "}")) == Outcome::ignores);
}

TEST_CASE("runtimes: experts that `ignore` misses stop old vLLM") {
  ModelFiles files = model(kApart, kCovered);
  const std::string expert = "model.layers.0.mlp.experts.0.up_proj.weight";
  files.tensors[expert] = {0, {expert, DType::bf16, {8, 8}, 0, 0}};
  CHECK(old_vllm(files) == Outcome::fails);
  files.config = Json::parse("{" + compressed_tensors(R"(["re:.*_proj$", "re:.*experts$"])") + "}",
                             "config.json");
  CHECK(old_vllm(files) == Outcome::loads);
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
