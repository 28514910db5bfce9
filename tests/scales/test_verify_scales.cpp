// The fate of a folder's scales in each runtime, layer by layer.
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "scales/scale_rounding.h"
#include "scales/verify/verify_scales.h"
#include "support/workplaces/inject_place.h"

using namespace fp8kv;
using test::InjectPlace;

namespace {

VerifyReport verified(const InjectPlace& place, const std::string& runtime,
                      const ServingCase& serving = {}) {
  return verify_scales(place.folder / "out", {choose_runtimes(runtime), false, serving});
}

std::string fates(const VerifyReport& report) {
  std::string text;
  for (const LayerFate& each : report.runtimes.at(0).fate.layers) {
    text += cat(text.empty() ? "" : ", ", fate_name(each.fate), each.doubled ? " twice" : "");
  }
  return text;
}

KvScales two_layers(float k, float v) {
  KvScales scales;
  scales.layers = {{{0.5f}, {0.25f}}, {{k}, {v}}};
  return scales;
}

test::TinyConfig of_dtype(DType dtype) {
  test::TinyConfig config = test::tiny_config();
  config.dtype = dtype;
  return config;
}

}  // namespace

TEST_CASE("verify: rounding is told of each layer, and is no loss unless a scale vanishes") {
  const InjectPlace place(of_dtype(DType::f16));
  place.inject("model", two_layers(0.5f, 1.00048828125f), "out", "vllm-rocm");
  const VerifyReport near = verified(place, "vllm");
  CHECK(fates(near) == "exact, rounded");
  // The scale is half way between two F16 numbers, and rounds to the even one, 1.
  CHECK(*near.runtimes[0].fate.layers[1].error ==
        doctest::Approx(1 - 1 / 1.00048828125).epsilon(1e-12));
  CHECK(near.arrives);

  place.inject("model", two_layers(0.5f, 2e-8f), "out", "vllm-rocm");
  const VerifyReport lost = verified(place, "vllm@0.9.2");
  CHECK(fates(lost) == "exact, rounded away");
  CHECK_FALSE(lost.arrives);
  CHECK(fate_text(lost.runtimes[0].fate) == "exact; rounded away in layer 1");
  CHECK(lost.runtimes[0].fixes ==
        std::vector<std::string>{"a model in bfloat16 has room for such scales"});
  // Suggests a form that newer versions keep as F32.
  CHECK(verified(place, "vllm").runtimes[0].fixes.at(0).starts_with("fp8kv inject "));

  // F16 cannot represent this scale, but the next power of two is normal in F16.
  place.inject("model", two_layers(0.5f, 0x1.9005p-15f), "out", "vllm-rocm");
  CHECK(verified(place, "vllm@0.9.2")
            .runtimes[0]
            .fixes.at(0)
            .ends_with(" --scale-rounding power-of-two"));
}

TEST_CASE("verify: a subnormal number that the dtype has arrives, with a warning") {
  const InjectPlace place(of_dtype(DType::f16));
  place.inject("model", two_layers(0.5f, 0x1p-20f), "out", "vllm-rocm");
  const VerifyReport report = verified(place, "vllm@0.9.2");
  CHECK(fates(report) == "exact, exact");
  CHECK(report.arrives);
  CHECK(fate_text(report.runtimes[0].fate) == "exact; subnormal in layer 1");
  CHECK(report.runtimes[0].fate.layers[1].why ==
        "model.layers.1.self_attn.v_scale: 9.536743e-07 is subnormal in float16, which some "
        "kernels take for 0");
  CHECK(report.warnings == std::vector<std::string>{report.runtimes[0].fate.layers[1].why});
  // 2^-14 is the smallest normal number.
  place.inject("model", two_layers(0.5f, 0x1p-14f), "out", "vllm-rocm");
  const VerifyReport normal = verified(place, "vllm@0.9.2");
  CHECK(fate_text(normal.runtimes[0].fate) == "exact");
  CHECK(normal.warnings.empty());
}

TEST_CASE("verify: without a dtype in the config, that of the weights rounds") {
  const auto dtype_of = [](DType dtype, bool in_config) {
    const InjectPlace place(of_dtype(dtype));
    if (!in_config) {
      const std::string text = test::read_file(place.folder / "model/config.json");
      place.folder.write("model/config.json", json_without_member(text, "torch_dtype"));
      CHECK(place.config_of("model").find("torch_dtype") == std::nullopt);
    }
    return serving_dtype(Checkpoint::open(place.folder / "model"));
  };
  for (const DType dtype : {DType::f16, DType::bf16}) {
    CHECK(dtype_of(dtype, true) == dtype);
    CHECK(dtype_of(dtype, false) == dtype);
  }
  CHECK(dtype_of(DType::f32, true) == std::nullopt);
  CHECK(dtype_of(DType::f32, false) == std::nullopt);

  // inject gives the same note.
  const InjectPlace place(of_dtype(DType::bf16));
  const std::string text = test::read_file(place.folder / "model/config.json");
  place.folder.write("model/config.json", json_without_member(text, "torch_dtype"));
  const InjectReport report = place.inject("model", two_layers(0.3f, 0.3f), "out", "vllm-rocm");
  REQUIRE(!report.notes.empty());
  CHECK(report.notes.back().find("scales are rounded to bfloat16") != std::string::npos);
}

TEST_CASE("verify: MI300 needs scales doubled, and a runtime says whether it does") {
  const InjectPlace place(of_dtype(DType::bf16));
  const ServingCase mi300{CacheFlag::fp8, true};
  place.inject("model", two_layers(0.5f, 0.5f), "out", "portable");
  CHECK(fates(verified(place, "vllm@0.14.1", mi300)) == "exact twice, exact twice");
  CHECK(fates(verified(place, "sglang", mi300)) == "exact twice, exact twice");
  CHECK(fates(verified(place, "transformers@5.23", mi300)) == "not known, not known");
  const VerifyReport newest = verified(place, "vllm", mi300);
  CHECK(fates(newest) == "not doubled, not doubled");
  CHECK(newest.runtimes[0].fixes.at(0).ends_with(" --replace --for vllm-rocm"));
  CHECK(verified(place, "tgi", mi300).runtimes[0].fixes ==
        std::vector<std::string>{"make the scales with 'fp8kv calibrate --headroom 2': those are "
                                 "safe without doubling"});
  CHECK(fates(verified(place, "vllm", {CacheFlag::fp8, false})) == "exact, exact");
}

TEST_CASE("verify: the flag of the cache decides where a runtime does not") {
  const InjectPlace place;
  place.inject("model", two_layers(0.5f, 0.5f), "out", "portable");
  const ServingCase none{CacheFlag::automatic}, e5m2{CacheFlag::e5m2};
  CHECK(fates(verified(place, "vllm", none)) == "exact, exact");
  CHECK(verified(place, "vllm", none).runtimes[0].serve ==
        cat("vllm serve ", (place.folder / "out").string()));
  CHECK(fates(verified(place, "vllm@0.14", none)) == "unused, unused");
  CHECK(fates(verified(place, "vllm", e5m2)) == "fails, fails");
  CHECK(fates(verified(place, "tgi", e5m2)) == "ignored, ignored");
  CHECK(fates(verified(place, "sglang", e5m2)) == "not known, not known");
}

TEST_CASE("verify: an FP8 cache that comes by itself, but without the scales, is no arrival") {
  test::TinyConfig config = test::tiny_config();
  const InjectPlace place(config);
  place.inject("model", two_layers(0.5f, 0.5f), "out", "vllm");
  // TGI turns FP8 on for this config, but does not know self_attn.attn.k_scale.
  FactSet facts = {Fact::scales,    Fact::parameters, Fact::compressed_tensors,
                   Fact::no_groups, Fact::frozen,     Fact::cache_scheme};
  facts.set_family(Family::llama_mistral);
  const RuntimeColumn& tgi = *choose_runtimes("tgi")[0].column;
  const RuntimeVerdict verdict = runtime_verdict(facts, tgi);
  CHECK(verdict.rule->outcome == RuntimeOutcome::turns_on);
  CHECK_FALSE(uses_scales(*verdict.rule));
  CHECK(rule_result(*verdict.rule) == "turns FP8 on, ignores");
}

TEST_CASE("runtimes: a rule that speaks of doubling says it to the program too") {
  for (const RuntimeColumn& column : runtime_columns()) {
    for (const RuntimeRule& rule : column.rules) {
      const std::string_view sentence = rule.sentence;
      CAPTURE(rule.sentence);
      if (sentence.find("doubled for FNUZ") != sentence.npos) {
        CHECK(rule.doubling == Doubling::doubled);
      }
      CHECK((sentence.find("nothing doubles") != sentence.npos) ==
            (rule.doubling == Doubling::kept));
    }
  }
}

TEST_CASE("runtimes: every column can be asked for by a name of its own") {
  for (const RuntimeColumn& column : runtime_columns()) {
    const RuntimeVersion first = column.first;
    const std::string version =
        *column.key ? column.key : cat(first.major, ".", first.minor, ".", first.patch);
    const auto chosen = choose_runtimes(cat(column.runtime, "@", version));
    CAPTURE(version);
    REQUIRE(chosen.size() == 1);
    CHECK(chosen[0].column == &column);
  }
  CHECK(choose_runtimes("all").size() == runtime_columns().size());
  CHECK(choose_runtimes("vllm")[0].column == find_runtime_column("vLLM", {0, 33}));
  CHECK(runtime_text(choose_runtimes("vllm@0.33.0+cu129")[0]) == "vLLM 0.33.0+cu129");
  CHECK(choose_runtimes("tgi@all").size() == 3);
  // 2.0 is older than any observed version. The branch pr-2028 has no version.
  CHECK(test::error_of([] { choose_runtimes("tgi@2.0"); }, ErrorKind::usage)
            .find("known are: pr-2028") != std::string::npos);
}
