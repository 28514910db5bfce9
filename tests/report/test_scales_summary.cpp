#include <string>

#include <doctest/doctest.h>

#include "report/scales_summary.h"
#include "support/sample_report.h"

namespace fp8kv {
namespace {

// Scales where K falls from 1000 and V is near 0.01, made from 8,192 tokens, enough for a verdict.
KvScales scales() {
  return test::sample_scales({.layers = 2, .name = ""});
}

ScalesSummary summary(const KvScales& of, const ServingNames& names = {}) {
  return summary_of(of, certify(of, KvFormat::e4m3fn), names);
}

TEST_CASE("serving names: the copy is named after the cache") {
  CHECK(serving_names("s.json", "models/m", KvFormat::nvfp4).copy == "m-nvfp4");
  CHECK(serving_names("s.json", "models/m", KvFormat::e4m3fn).copy == "m-fp8");
  CHECK(serving_names("s.json", "", KvFormat::nvfp4).copy == "MODEL-nvfp4");
}

TEST_CASE("summary: scales that matter are to be put into the model") {
  const ScalesSummary said = summary(scales(), {"models/a", "s.json", "a-fp8"});
  CHECK(said.made == "scales of 2 layers, one per tensor, from 8,192 tokens in 4 windows");
  CHECK(said.at_1 == "would not have done: 2 of 2 layers need their scales");
  CHECK(said.next == "fp8kv inject models/a --scales s.json -o a-fp8");
  CHECK(said.ready);
  CHECK(said.tone == ScalesSummary::Tone::good);
}

TEST_CASE("summary: where vLLM drops the scales, inject is for other runtimes") {
  const ServingNames names{
      .model = "m",
      .scales = "s.json",
      .copy = "m-fp8",
      .vllm = {CopyFate::Use::useless, "drops the scales of MLA: an FP8 cache runs with 1"}};
  const ScalesSummary said = summary(scales(), names);
  CHECK(said.next ==
        "fp8kv inject m --scales s.json -o m-fp8, for other runtimes than vLLM. vLLM: drops the "
        "scales of MLA: an FP8 cache runs with 1");
  CHECK(said.ready);
  CHECK(vllm_command(certify(scales(), KvFormat::e4m3fn), names) ==
        "vllm serve m --kv-cache-dtype fp8");
}

TEST_CASE("summary: where it is not known what vLLM does, or it has no such model, that is said") {
  ServingNames names{.model = "m", .scales = "s.json", .copy = "m-fp8"};
  names.vllm = {CopyFate::Use::unknown, "its loader of this family was not run"};
  CHECK(summary(scales(), names).next ==
        "fp8kv inject m --scales s.json -o m-fp8. Whether vLLM uses them is not known: its loader "
        "of this family was not run");
  CHECK(vllm_command(certify(scales(), KvFormat::e4m3fn), names) ==
        "vllm serve m-fp8 --kv-cache-dtype fp8");
  names.vllm = {CopyFate::Use::no_model, "has no model of this architecture"};
  CHECK(summary(scales(), names).next ==
        "fp8kv inject m --scales s.json -o m-fp8, for other runtimes than vLLM. vLLM: has no model "
        "of this architecture");
}

TEST_CASE("summary: one scale for each head needs another target of inject") {
  KvScales heads = scales();
  for (LayerScales& layer : heads.layers)
    layer = {{layer.k[0], layer.k[0]}, {layer.v[0], layer.v[0]}};
  const ScalesSummary said = summary(heads);
  CHECK(said.made == "scales of 2 layers, one per KV head, from 8,192 tokens in 4 windows");
  CHECK(said.next == "fp8kv inject MODEL --scales SCALES.json -o MODEL-fp8 --for vllm");
}

TEST_CASE("summary: where 1.0 would have done, that is said") {
  KvScales tame = scales();
  for (size_t i = 0; i < 2; ++i) {
    tame.provenance.amax[i] = tame.provenance.parts.back().layers[i] = {{4, 4}, {4, 4}, {4, 4}};
    tame.provenance.octaves[i] = {{0, 0, {10, 10, 1}}, {0, 0, {10, 10, 1}}};
    tame.layers[i] = {{4.0f / 448}, {4.0f / 448}};
  }
  CHECK(summary(tame).at_1 == "would have done in every layer");
  CHECK(summary(tame).tone == ScalesSummary::Tone::good);
  tame.provenance.octaves.clear();
  CHECK(summary(tame).at_1 == "cannot be judged: 2 of 2 layers are not decided");
  CHECK(summary(tame).tone == ScalesSummary::Tone::unsure);
}

TEST_CASE("summary: what has to be done first comes before inject") {
  KvScales part = scales();
  part.provenance.shards = {4, {1}, 9, 16, 32768};
  CHECK(summary(part).made ==
        "scales of 2 layers, one per tensor, from 8,192 tokens in 4 windows: 1 of 4 shards");
  CHECK(summary(part).next == "calibrate the other 3 shards, then fp8kv merge");
  KvScales little = scales();
  little.provenance.tokens = 100;
  little.provenance.parts.back().tokens = 50;
  CHECK(summary(little).at_1 ==
        "cannot be judged: too little text: 100 tokens; 900 more are needed");
  CHECK(summary(little).next == "calibrate on more text, 900 tokens more at least");
  KvScales lossy = scales();
  lossy.layers[1].k[0] /= 100;
  CHECK(summary(lossy).next ==
        "fp8kv eval MODEL --data TEXT --scales SCALES.json, as values of layer 1 are lost");
  CHECK(summary(lossy).tone == ScalesSummary::Tone::bad);
  for (const KvScales& each : {part, little, lossy}) CHECK(!summary(each).ready);
}

TEST_CASE("summary: layers that should stay in 16 bit are kept so when vLLM serves them") {
  KvScales wide = scales();
  wide.provenance.octaves[1].v = {
      0, -30, {95, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5}};
  const Certificate certificate = certify(wide, KvFormat::e4m3fn);
  CHECK(summary_of(wide, certificate, {}).at_1 ==
        "would not have done: 1 of 2 layers needs its scale and 1 of 2 layers should stay in 16 "
        "bit");
  CHECK(summary_of(wide, certificate, {}).tone == ScalesSummary::Tone::unsure);
  CHECK(vllm_command(certificate, {}) ==
        "vllm serve MODEL-fp8 --kv-cache-dtype fp8 --kv-cache-dtype-skip-layers 1");
  CHECK(vllm_command(certify(scales(), KvFormat::e4m3fn), {}) ==
        "vllm serve MODEL-fp8 --kv-cache-dtype fp8");
}

}  // namespace
}  // namespace fp8kv
