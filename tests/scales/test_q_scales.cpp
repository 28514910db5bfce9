// Scales of Q are read, kept, written and compared beside those of K and V.
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "report/certificate.h"
#include "report/certificate_words.h"
#include "scales/scale_diff.h"
#include "scales/scale_file.h"
#include "support/models/scaled_model.h"
#include "support/workplaces/inject_place.h"

namespace fp8kv {
namespace {

using Strings = std::vector<std::string>;
using test::InjectPlace;
using test::ScaledModel;

std::unique_ptr<ScaledModel> with_q(const std::string& name, double second = 0.75) {
  auto model = std::make_unique<ScaledModel>();
  for (int layer = 0; layer < 2; ++layer) {
    model->layer(layer, "k_scale", 1).layer(layer, "v_scale", 1);
    model->layer(layer, name, layer == 0 ? 0.5 : second);
  }
  return model;
}

KvScales known_maxima(const test::TinyConfig& config) {
  KvScales scales;
  scales.n_kv_heads = config.n_kv_heads;
  for (int64_t i = 0; i < config.n_layers; ++i) {
    scales.layers.push_back({{1}, {1}});
    scales.provenance.amax.push_back(
        {{448, 448}, {448, 448}, {224, 896.0f * static_cast<float>(i + 1)}});
  }
  return scales;
}

TEST_CASE("q scales: every name that runtimes read is read, and kept in a scale file") {
  for (const char* name : {"q_scale", "attn.q_scale", "q_proj.q_scale"}) {
    CAPTURE(std::string(name));
    const FoundScales found = with_q(name)->read();
    CHECK(found.scales.layers[0].q == std::vector{0.5f});
    CHECK(found.scales.layers[1].q == std::vector{0.75f});
    CHECK(found.notes.empty());
    CHECK(found.q_tensors.size() == 2);
    const std::string text = scale_file_text(found.scales);
    CHECK(parse_scale_file(Json::parse(text, "s"), "s").layers == found.scales.layers);
  }
}

TEST_CASE("q scales: a file without them has no such member") {
  ScaledModel model;
  model.layer(0, "k_scale", 1).layer(0, "v_scale", 1);
  model.layer(1, "k_scale", 1).layer(1, "v_scale", 1);
  CHECK(scale_file_text(model.read().scales).find("q_scale") == std::string::npos);
}

TEST_CASE("q scales: two names of one layer must agree") {
  const auto model = with_q("q_scale");
  model->layer(1, "attn.q_scale", 0.75);
  CHECK(model->read().scales.layers[1].q == std::vector{0.75f});
  const auto other = with_q("q_scale");
  other->layer(1, "attn.q_scale", 0.25);
  CHECK(other->error() ==
        "'MODEL': 'model.layers.1.self_attn.attn.q_scale' is 0.25, "
        "'model.layers.1.self_attn.q_scale' is 0.75: expected the same, as both are one scale");
}

TEST_CASE("q scales: one by head or in some layers alone is left alone with a word") {
  const auto heads = with_q("x");
  heads->add("model.layers.0.self_attn.q_scale", {1, 2}, DType::f32, {2});
  CHECK(heads->read().notes == Strings{"ignored 'model.layers.0.self_attn.q_scale': scales of Q by "
                                       "head, which no runtime takes"});
  const auto one = with_q("x");
  one->layer(0, "q_scale", 1);
  CHECK(one->read().notes ==
        Strings{"ignored 'model.layers.0.self_attn.q_scale': scales of Q, which other layers do "
                "not have"});
  CHECK(one->read().scales.layers[0].q.empty());
}

TEST_CASE("q scales: numbers that nobody set are left alone, with a warning") {
  for (const double odd : {0.0, -2.9e25, 5.1e-21, 1e6}) {
    CAPTURE(odd);
    const FoundScales found = with_q("q_scale", odd)->read();
    CHECK(found.scales.layers[0].k == std::vector{1.0f});
    CHECK(found.scales.layers[0].q.empty());
    REQUIRE(!found.diagnoses.empty());
    CHECK(found.diagnoses.back().id == "q-not-measured");
    CHECK(found.diagnoses.back().grave);
    CHECK(found.notes == Strings{"ignored 'model.layers.0.self_attn.q_scale' and 1 other: scales "
                                 "of Q that nobody set"});
  }
}

TEST_CASE("q scales: they are the largest Q of all heads / 448, and twice that for FNUZ") {
  const KvScales scales = with_q_scales(known_maxima(test::tiny_config()), "s");
  CHECK(scales.layers[0].q == std::vector{2.0f});
  CHECK(scales.layers[1].q == std::vector{4.0f});
  CHECK(with_format(scales, KvFormat::e4m3fnuz).layers[1].q == std::vector{8.0f});
}

TEST_CASE("q scales: inject writes them beside K's and V's, with shape [1], and reads them again") {
  const InjectPlace place;
  const auto inject = [&](const KvScales& scales, const char* to, InjectOptions how) {
    how.overwrite = true;
    return inject_scales(Checkpoint::open(place.folder / "model"), scales, place.folder / to, how);
  };
  const KvScales maxima = known_maxima(place.config);
  inject(maxima, "out", {.target = "vllm", .q_scales = true});
  const Checkpoint out = Checkpoint::open(place.folder / "out");
  CHECK(out.at("model.layers.1.self_attn.q_scale").shape == Shape{1});
  CHECK(place.scales_in("out").layers[1].q == std::vector{4.0f});
  // Maxima alone do not ask for scales of Q.
  inject(maxima, "plain", {.target = "vllm"});
  CHECK(place.scales_in("plain").layers[1].q.empty());
  // Existing scales of Q are kept if the runtime takes them.
  inject(place.scales_in("out"), "again", {.target = "vllm"});
  CHECK(place.scales_in("again").layers == place.scales_in("out").layers);
  const InjectReport tgi = inject(place.scales_in("out"), "tgi", {.target = "tgi"});
  CHECK(tgi.notes[0] == "the scales of Q are left out: TGI is not known to take them");
  CHECK(place.scales_in("tgi").layers[1].q.empty());
}

TEST_CASE("q scales: what cannot be written is refused") {
  const InjectPlace place;
  const auto error = [&](const KvScales& scales, const char* target, ErrorKind kind) {
    return test::error_of(
        [&] {
          inject_scales(Checkpoint::open(place.folder / "model"), scales, place.folder / "out",
                        {.target = target, .q_scales = true, .scales_name = "'s.json'"});
        },
        kind);
  };
  KvScales scales = known_maxima(place.config);
  CHECK(error(scales, "tgi", ErrorKind::usage) == "no scales of Q can be written for 'tgi'");
  scales.provenance.amax.clear();
  CHECK(error(scales, "vllm", ErrorKind::input) ==
        "'s.json': layer 0: has no scale of Q, and no maximum of Q");
}

TEST_CASE("q scales: diff compares them where both sides know theirs") {
  const KvScales a = with_q("q_scale")->read().scales, b = with_q("q_scale", 1.5)->read().scales;
  const ScaleDiff diff = diff_scales(a, b, 0);
  REQUIRE(diff.q);
  CHECK(diff.q->layers == 2);
  CHECK(diff.q->differing == 1);
  CHECK(diff.q->farthest_layer == 1);
  CHECK(diff.q->farthest.ratio() == 2);
  CHECK(diff.differing_layers == 0);
  const ScaleDiff one = diff_scales(a, with_q("x")->read().scales, 0);
  CHECK_FALSE(one.q);
  CHECK(one.notes == Strings{"B has no scales of Q: those of the other were not compared"});
}

TEST_CASE("q scales: the certificate judges Q at 1.0 as it judges K and V") {
  KvScales scales = known_maxima(test::tiny_config());
  scales.provenance.amax[0].q = {1, 1};
  const Certificate certificate = certify(scales, KvFormat::e4m3fn);
  REQUIRE(certificate.layers[1].q);
  CHECK(certificate.layers[1].q->verdict == Verdict::needs_scale);
  CHECK(certificate.layers[1].q->reason == "Q saturates at 1.0");
  CHECK(*certificate.layers[1].q->in_force.saturation == doctest::Approx(0).epsilon(1e-6));
  // Without octaves, the maxima do not show how small the other values are.
  CHECK_FALSE(certificate.layers[0].q);
  CHECK(q_sentence(certificate) == "Q saturates at 1.0 in layer 1");
  scales.provenance.octaves.resize(2);
  scales.provenance.octaves[0].q = {0, 0, {100}};
  CHECK(q_sentence(certify(scales, KvFormat::e4m3fn)) ==
        "Q saturates at 1.0 in layer 1; too little text in layer 0");
  scales.format = KvFormat::nvfp4;
  CHECK_FALSE(certify(scales, KvFormat::nvfp4).layers[1].q);
}

}  // namespace
}  // namespace fp8kv
