// The models that each runtime knows in each version, and verify's use of that table.
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "base/text.h"
#include "config/architectures.h"
#include "scales/rules/runtime_choice.h"
#include "scales/rules/runtime_models.h"
#include "scales/verify/verify_scales.h"
#include "support/workplaces/inject_place.h"

using namespace fp8kv;

namespace {

constexpr RuntimeVersion kEnd = KnownVersions{}.before;

RuntimeVersion just_before(RuntimeVersion version) {
  constexpr int kLast = 1000;
  if (version.patch) return {version.major, version.minor, version.patch - 1};
  if (version.minor) return {version.major, version.minor - 1, kLast};
  return {version.major - 1, kLast, kLast};
}

// The facts of a folder of this model. vLLM loads such scales since 0.7.2.
FactSet folder_of(std::string_view architecture) {
  FactSet facts = {Fact::scales,    Fact::apart,  Fact::compressed_tensors, Fact::cache_scheme,
                   Fact::no_groups, Fact::frozen, Fact::single_file,        Fact::index};
  facts.set_model(runtime_model_number(architecture, ""));
  return facts;
}

}  // namespace

TEST_CASE("runtime models: every architecture that is computed has a row, and only one") {
  for (const Architecture& each : architectures()) {
    CAPTURE(each.name);
    CHECK(runtime_model_number(each.name, each.model_type) > 0);
  }
  std::set<std::string_view> names;
  for (const RuntimeModel& each : runtime_models()) names.insert(each.architecture);
  CHECK(names.size() == runtime_models().size());
}

TEST_CASE("runtime models: a name that is not listed has no number, and nothing is said of it") {
  CHECK(runtime_model_number("OtherForCausalLM", "llama") == 0);
  CHECK(runtime_model_number("", "other") == 0);
  CHECK(runtime_model_number("", "llama") == runtime_model_number("LlamaForCausalLM", "llama"));
  CHECK(model_rule(0, "vLLM", {}, kEnd) == nullptr);
  CHECK(model_rule(1, "TensorRT-LLM", {}, kEnd) == nullptr);
}

TEST_CASE("runtime models: a version before the first and one after the last do not know it") {
  const auto sources = runtime_model_sources();
  for (size_t row = 0; row < runtime_models().size(); ++row) {
    const auto number = static_cast<uint8_t>(row + 1);
    for (size_t i = 0; i < sources.size(); ++i) {
      const KnownVersions& known = runtime_models()[row].known[i];
      const auto said = [&](RuntimeVersion version) {
        return model_rule(number, sources[i].runtime, version, version);
      };
      CAPTURE(cat(runtime_models()[row].architecture, " in ", sources[i].runtime));
      if (!known.ever) continue;
      CHECK(said(known.since) == nullptr);
      // For a range without an end, the newest versions count.
      const RuntimeRule* newest = model_rule(number, sources[i].runtime, known.since, kEnd);
      CHECK((newest != nullptr) == (known.before != kEnd));
      if (known.since != RuntimeVersion{}) CHECK(said(just_before(known.since)) != nullptr);
      if (known.before == kEnd) continue;
      CHECK(said(known.before) != nullptr);
      CHECK(said(just_before(known.before)) == nullptr);
    }
  }
}

TEST_CASE("runtime models: versions are written as ranges") {
  const KnownVersions known = {.since = {0, 19}};
  CHECK(known_versions_text(known) == "from 0.19");
  CHECK(known_versions_text(known.until({0, 23, 1})) == "0.19 up to 0.23.1");
  CHECK(known_versions_text({}) == "all");
  CHECK(known_versions_text(KnownVersions{}.until({0, 23})) == "before 0.23");
  CHECK(known_versions_text({.ever = false}) == "none");
}

TEST_CASE("runtime models: scales are not called loaded before the runtime had the model") {
  const FactSet facts = folder_of("Qwen3ForCausalLM");
  const auto verdict = [&](const char* runtime) {
    const ChosenRuntime chosen = choose_runtimes(runtime)[0];
    return runtime_verdict(facts, *chosen.column, chosen.number);
  };
  const RuntimeVerdict old = verdict("vllm@0.8.3");
  CHECK(old.rule->outcome == RuntimeOutcome::unknown);
  CHECK(std::string(old.rule->sentence) ==
        "does not know the model Qwen3ForCausalLM before 0.8.4: stops, or leaves it to "
        "transformers, which was not run");
  CHECK(verdict("vllm@0.8.4").rule->outcome == RuntimeOutcome::loads);
  CHECK(verdict("vllm@0.33").rule->outcome == RuntimeOutcome::turns_on);
  CHECK(verdict("transformers@4.46").rule->outcome == RuntimeOutcome::unknown);
}

TEST_CASE("runtime models: a range that has the model in its later versions alone says which") {
  const auto column = choose_runtimes("vllm@0.8.4")[0].column;
  const RuntimeVerdict verdict = runtime_verdict(folder_of("Qwen3ForCausalLM"), *column);
  CHECK(verdict.rule->outcome == RuntimeOutcome::loads);
  REQUIRE_FALSE(verdict.notes.empty());
  CHECK(std::string(verdict.notes.back()->sentence) ==
        "has the model Qwen3ForCausalLM from 0.8.4 on");
}

TEST_CASE("verify: an older version than the model is no arrival, and newer ones are named") {
  test::TinyConfig config = test::tiny_config();
  config.architecture = "Qwen3ForCausalLM";
  config.model_type = "qwen3";
  config.block.qk_norm = QkNorm::per_head;
  const test::InjectPlace place(config);
  KvScales scales;
  for (int64_t i = 0; i < config.n_layers; ++i) scales.layers.push_back({{0.5f}, {0.25f}});
  place.inject("model", scales, "out", "portable");
  const auto report = [&](const char* runtime) {
    return verify_scales(place.folder / "out", {choose_runtimes(runtime), false, {}});
  };
  CHECK(report("vllm@0.8.4").arrives);
  const VerifyReport old = report("vllm@0.8.3");
  CHECK_FALSE(old.arrives);
  REQUIRE(old.runtimes.at(0).fixes.size() == 1);
  CHECK(old.runtimes[0].fixes[0] ==
        "use vLLM 0.8.4 and newer, which loads these scales as they are");
}

TEST_CASE("verify: a runtime that never had the model is asked for by name alone") {
  test::TinyConfig config = test::tiny_config();
  config.architecture = "Qwen3ForCausalLM";
  config.model_type = "qwen3";
  config.block.qk_norm = QkNorm::per_head;
  const test::InjectPlace place(config);
  KvScales scales;
  for (int64_t i = 0; i < config.n_layers; ++i) scales.layers.push_back({{0.5f}, {0.25f}});
  place.inject("model", scales, "out", "portable");
  const auto asked = [&](const VerifyRequest& request) {
    std::string names;
    for (const VerifiedRuntime& each : verify_scales(place.folder / "out", request).runtimes) {
      if (each.asked) names += cat(each.chosen.column->runtime, " ");
    }
    return names;
  };
  CHECK(asked({usual_runtimes(), true, {}}) == "vLLM SGLang ");
  CHECK(asked({choose_runtimes("tgi"), false, {}}) == "TGI ");
  CHECK_FALSE(verify_scales(place.folder / "out", {choose_runtimes("tgi"), false, {}}).arrives);
}
