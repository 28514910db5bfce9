// Messages about scales before a runtime loads them: rounding, loss, and the way to serve them.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "core/numbers/half.h"
#include "scales/scale_rounding.h"
#include "scales/write/arrival.h"
#include "support/workplaces/inject_place.h"

using namespace fp8kv;
using test::InjectPlace;
using Strings = std::vector<std::string>;

namespace {

KvScales scales_of(std::vector<LayerScales> layers) {
  KvScales scales;
  scales.layers = std::move(layers);
  return scales;
}

constexpr Fact kCompressed[] = {Fact::scales,    Fact::apart,  Fact::compressed_tensors,
                                Fact::no_groups, Fact::frozen, Fact::cache_scheme};

FactSet facts_with(std::initializer_list<Fact> more) {
  FactSet facts(more);
  for (const Fact fact : kCompressed) facts.add(fact);
  facts.set_family(Family::llama_mistral);
  return facts;
}

}  // namespace

TEST_CASE("arrival: the farthest that a dtype rounds is found, with its place") {
  const float odd = 1.00390625f;  // half way between two numbers of bfloat16
  const ScaleRounding found = scale_rounding(scales_of({{{1}, {2}}, {{4}, {odd}}}), DType::bf16);
  CHECK(found.error == doctest::Approx(0.00390625 / odd).epsilon(1e-12));
  CHECK(found.farthest.layer == 1);
  CHECK(found.farthest.of == 'V');
  CHECK_FALSE(found.lost);
  CHECK(scale_rounding(scales_of({{{1}, {2}}}), DType::f16).error == 0);
}

TEST_CASE("arrival: scales that a dtype cannot hold are lost, in float16 long before bfloat16") {
  const auto lost = [](float scale, DType dtype) -> std::string {
    const auto found = scale_rounding(scales_of({{{1}, {scale}}}), dtype).lost;
    return found ? lost_text(*found, dtype) : "";
  };
  CHECK(lost(2e-8f, DType::f16) == "layer 0 V: 2e-08 becomes 0 in float16");
  CHECK(lost(7e4f, DType::f16) == "layer 0 V: 70000 becomes infinite in float16");
  CHECK(lost(1e-6f, DType::f16) ==
        "layer 0 V: 1e-06 becomes 1.013279e-06, a subnormal number, in float16");
  CHECK(lost(0x1p-20f, DType::f16).empty());  // float16 holds it as a subnormal number
  CHECK(lost(0x1p-14f, DType::f16).empty());
  CHECK(lost(2e-8f, DType::bf16).empty());
}

TEST_CASE("arrival: a subnormal number that a dtype has is exact there, and told of") {
  const auto found = [](float k, float v, DType dtype) {
    return scale_rounding(scales_of({{{1}, {0.5f}}, {{k}, {v}}}), dtype);
  };
  const ScaleRounding least = found(0x1p-24f, 0x1p-20f, DType::f16);
  CHECK(least.error == 0);
  CHECK_FALSE(least.lost);
  REQUIRE(least.subnormal);
  CHECK(lost_text(*least.subnormal, DType::f16) ==
        "layer 1 K: 5.9604645e-08 is subnormal in float16, which some kernels take for 0");
  CHECK_FALSE(found(0x1p-14f, 1, DType::f16).subnormal);
  CHECK_FALSE(found(0x1p-24f, 1, DType::bf16).subnormal);
  const ScaleRounding both = found(1e-6f, 0x1p-20f, DType::f16);
  CHECK(both.lost->of == 'K');
  CHECK(both.subnormal->of == 'V');
}

TEST_CASE("arrival: powers of two are the next above, and exact in both dtypes") {
  Rng rng(5);
  KvScales scales = scales_of({{{1}, {0.75f}}, {{3}, {0x1p-126f}}});
  for (int i = 0; i < 500; ++i) {
    const float any = std::ldexp(1 + static_cast<float>(rng.next() % 1000) / 1000, -14 + i % 29);
    scales.layers.push_back({{any}, {any / 2}});
  }
  const KvScales raised = at_powers_of_two(scales);
  CHECK(raised.layers[0].k[0] == 1);
  CHECK(raised.layers[0].v[0] == 1);
  CHECK(raised.layers[1].k[0] == 4);
  CHECK(raised.layers[1].v[0] == 0x1p-126f);
  for (size_t layer = 2; layer < scales.layers.size(); ++layer) {
    const float before = scales.layers[layer].k[0], after = raised.layers[layer].k[0];
    int exponent = 0;
    CHECK(std::frexp(after, &exponent) == 0.5f);
    CHECK((after >= before && after < 2 * before));
    CHECK(f16_to_float(f16_from_float(after)) == after);
    CHECK(bf16_to_float(bf16_from_float(after)) == after);
  }
}

TEST_CASE("arrival: rounding is said for the runtimes that do it, with the way out") {
  const KvScales usual = scales_of({{{1}, {1.00390625f}}}), tiny = scales_of({{{1}, {4e-8f}}}),
                 least = scales_of({{{1}, {1e-9f}}});
  const ArrivalNotes notes = rounding_notes(usual, facts_with({}), DType::bf16);
  CHECK(notes.notes == Strings{"vLLM 0.7.2 to 0.14 and transformers 4.45 to 5.23: scales are "
                               "rounded to bfloat16, by up to 0.39 % (layer 0 V)"});
  CHECK(notes.warnings.empty());
  CHECK(rounding_notes(usual, facts_with({}), DType::f32).notes.empty());
  CHECK(rounding_notes(usual, facts_with({}), std::nullopt).notes.empty());
  const std::string who = "vLLM 0.7.2 to 0.14 and transformers 4.45 to 5.23: layer 0 V: ";
  const std::string instead =
      "vLLM 0.15 and newer, SGLang 0.5.19 and newer and TGI 2.4 and newer: kept as float32";
  CHECK(rounding_notes(tiny, facts_with({}), DType::f16).warnings ==
        Strings{who + "4e-08 becomes 5.9604645e-08, a subnormal number, in float16; " + instead});
  CHECK(rounding_notes(least, facts_with({}), DType::f16).warnings ==
        Strings{who + "1e-09 becomes 0 in float16; " + instead});
  const KvScales exact = scales_of({{{1}, {0x1p-20f}}});
  CHECK(rounding_notes(exact, facts_with({}), DType::f16).warnings ==
        Strings{who + "9.536743e-07 is subnormal in float16, which some kernels take for 0; " +
                instead});
  const KvScales large = scales_of({{{1}, {0x1.9p-15f}}});
  CHECK(rounding_notes(large, facts_with({}), DType::f16)
            .warnings[0]
            .ends_with("a power of two survives: --scale-rounding power-of-two"));
}

TEST_CASE("arrival: a runtime that loses the scales of a family is warned of, with others") {
  CHECK(loss_warnings(facts_with({Fact::parameters})).empty());
  FactSet qwen3 = facts_with({Fact::parameters});
  qwen3.set_family(Family::qwen3);
  const Strings lost = loss_warnings(qwen3);
  REQUIRE(lost.size() == 1);
  CHECK(
      lost[0].starts_with("SGLang all versions: makes the attention of this family without "
                          "scales"));
  CHECK(lost[0].find("; loaded by vLLM ") != std::string::npos);
  CHECK(lost[0].find(" TGI 2.4 and newer") != std::string::npos);
}

TEST_CASE("arrival: the commands that serve a folder, with its name as one word of a shell") {
  const auto commands = [](const std::string& folder) {
    Strings texts;
    for (const ServeCommand& each : serve_commands(facts_with({Fact::parameters}), folder)) {
      texts.push_back(each.command);
    }
    return texts;
  };
  CHECK(commands("out") ==
        Strings{"vllm serve out --kv-cache-dtype fp8",
                "python3 -m sglang.launch_server --model-path out --kv-cache-dtype fp8_e4m3",
                "text-generation-launcher --model-id out --kv-cache-dtype fp8_e4m3fn"});
  const std::vector<int64_t> skipped = {0, 4};
  const auto skipping = serve_commands(facts_with({Fact::parameters}), "out", skipped);
  CHECK(skipping[0].command ==
        "vllm serve out --kv-cache-dtype fp8 --kv-cache-dtype-skip-layers 0 4");
  CHECK(skipping[1].command == serve_commands(facts_with({Fact::parameters}), "out")[1].command);
  CHECK(serve_commands({Fact::scale_file, Fact::with_model_type}, "s.json").empty());
  CHECK(commands("it's a model")[0] == "vllm serve 'it'\\''s a model' --kv-cache-dtype fp8");
}

TEST_CASE("inject: a portable folder has the names that the model's family needs") {
  const auto names_for = [](const std::string& model_type) {
    const InjectPlace place(test::one_layer());
    const std::string config = test::read_file(place.folder / "model/config.json");
    // Qwen3-Next has attention in every fourth layer by default.
    place.folder.write("model/config.json",
                       json_with_member(json_with_member(config, "full_attention_interval", "1"),
                                        "model_type", '"' + model_type + '"'));
    place.inject("model", scales_of({{{0.5f}, {0.25f}}}), "out", "portable");
    CHECK(place.scales_in("out").layers[0] == LayerScales{{0.5f}, {0.25f}});
    return place.scale_tensors("out");
  };
  const std::string at = "model.layers.0.self_attn.";
  const Strings both = {at + "attn.k_scale", at + "attn.v_scale", at + "k_scale", at + "v_scale"};
  CHECK(names_for("llama") == both);
  CHECK(names_for("olmo2") == both);
  CHECK(names_for("qwen2_moe") == Strings{at + "attn.k_scale", at + "attn.v_scale"});
  CHECK(names_for("qwen3_next") == Strings{at + "k_proj.k_scale", at + "v_proj.v_scale"});
}

TEST_CASE("inject: scales can be raised to powers of two on the way") {
  const InjectPlace place(test::one_layer());
  const Checkpoint model = Checkpoint::open(place.folder / "model");
  inject_scales(model, scales_of({{{0.3f}, {0.25f}}}), place.folder / "out",
                {.target = "portable", .powers_of_two = true});
  CHECK(place.scales_in("out").layers[0] == LayerScales{{0.5f}, {0.25f}});
}
