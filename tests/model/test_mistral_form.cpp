// Models in Mistral's own format against the same models in that of Hugging Face.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "base/log.h"
#include "calib/collect.h"
#include "checkpoint/identity/model_identity.h"
#include "checkpoint/model/read_model_config.h"
#include "core/numbers/fp8.h"
#include "files/file.h"
#include "model/weights/stream_layout.h"
#include "support/forms/mistral_form.h"
#include "support/models/family_model.h"
#include "support/models/goldens.h"
#include "support/models/run_model.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

using test::OwnFiles;

// Cases with each kind of model that the format has.
constexpr const char* kFamilies[] = {"mistral",
                                     "mistral-seven",
                                     "mistral-tied",
                                     "ministral-full",
                                     "ministral-types",
                                     "ministral3",
                                     "ministral3-window",
                                     "mistral3-seven",
                                     "mistral4",
                                     "mistral4-tied",
                                     "mistral4-vision",
                                     "mistral3-ministral3",
                                     "mistral4-vision-tied"};
constexpr const char* kWindows[] = {"mistral-window", "mixtral", "mixtral-window", "mixtral-tied"};

// A model in both formats.
struct Twins {
  Twins(const Checkpoint& model, OwnFiles files) : theirs(model) {
    test::write_own_form(folder / "own", test::params_of(model.config()), test::own_tensors(model),
                         files);
  }
  Checkpoint own() const { return Checkpoint::open(folder / "own"); }

  test::TempDir folder;
  const Checkpoint& theirs;
};

void check_same_logits(const Checkpoint& one, const Checkpoint& other,
                       const std::vector<int32_t>& ids) {
  const auto backend = make_cpu_backend(2);
  CHECK(test::run_model(one, read_model_config(one), *backend, ids) ==
        test::run_model(other, read_model_config(other), *backend, ids));
}

}  // namespace

TEST_CASE("mistral form: logits have the bits of the model in Hugging Face's format") {
  for (const char* name : kFamilies) {
    CAPTURE(std::string(name));
    const test::FamilyModel model(name);
    const Twins twins(model.checkpoint, OwnFiles::single);
    check_same_logits(twins.own(), model.checkpoint, model.ids);
  }
  for (const char* name : kWindows) {
    CAPTURE(std::string(name));
    const auto [folder, file, ids] = test::golden(name);
    const Checkpoint theirs = Checkpoint::open(folder);
    const Twins twins(theirs, OwnFiles::single);
    check_same_logits(twins.own(), theirs, ids);
  }
}

TEST_CASE("mistral form: logits and amax are transformers'") {
  const auto backend = make_cpu_backend(2);
  Log log(Verbosity::quiet);
  for (const char* name : kFamilies) {
    CAPTURE(std::string(name));
    const test::FamilyModel model(name);
    const Twins twins(model.checkpoint, OwnFiles::numbered);
    const Checkpoint own = twins.own();
    const ModelConfig config = read_model_config(own);
    test::check_logits(model, test::run_model(own, config, *backend, model.ids));
    test::check_amax(model, collect_magnitudes({own, config, *backend}, {model.ids}, log));
  }
}

TEST_CASE("mistral form: shards with and without an index are the model of one file") {
  const test::FamilyModel model("ministral3");
  for (const OwnFiles files : {OwnFiles::numbered, OwnFiles::indexed}) {
    const Twins twins(model.checkpoint, files);
    CHECK(twins.own().shards().size() == 2);
    check_same_logits(twins.own(), model.checkpoint, model.ids);
  }
}

TEST_CASE("mistral form: scales of either folder are for both") {
  for (const char* name : {"mistral", "ministral3", "mistral3-ministral3"}) {
    CAPTURE(std::string(name));
    const test::FamilyModel model(name);
    const Twins twins(model.checkpoint, OwnFiles::single);
    const Checkpoint own = twins.own();
    CHECK(model_identity(own, read_model_config(own)) ==
          model_identity(model.checkpoint, model.config));
  }
}

TEST_CASE("mistral form: a model whose experts are stacked elsewhere is the same but for them") {
  const test::FamilyModel model("mistral4");
  const Twins twins(model.checkpoint, OwnFiles::single);
  const Checkpoint own = twins.own();
  const ModelIdentity one = model_identity(own, read_model_config(own));
  const ModelIdentity other = model_identity(model.checkpoint, model.config);
  CHECK(one.config == other.config);
  CHECK(one.embedding == other.embedding);
  CHECK(one.layers[0] == other.layers[0]);  // has no experts
  CHECK_FALSE(one.layers[1] == other.layers[1]);
}

TEST_CASE("mistral form: rows that are streamed arrive in order") {
  const test::FamilyModel model("mistral");
  const Twins twins(model.checkpoint, OwnFiles::single);
  const Checkpoint own = twins.own();
  StreamLayout layout;
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    const auto& place = own.tensors().at(cat("model.layers.0.self_attn.", name, ".weight"));
    layout.places.push_back({place.shard, &place.entry, layout.bytes, place.rows});
    layout.bytes += place.entry.end - place.entry.begin;
  }
  for (const size_t block_bytes : {100, 1000, 1 << 20}) {
    std::string buffer(layout.bytes, '\0');
    for (const StreamBlock& block : blocks_of(layout, block_bytes)) {
      const std::string read =
          read_range(own.folder() / "consolidated.safetensors", block.offset, block.bytes);
      for (const StreamPiece& piece : block.pieces) {
        buffer.replace(piece.at, piece.bytes, read, piece.in_block, piece.bytes);
      }
    }
    for (const StreamPlace& place : layout.places) {
      const std::string expected = own.read(place.entry->name);
      CHECK(buffer.substr(place.at, expected.size()) == expected);
    }
  }
}

TEST_CASE("mistral form: FP8 weights have the bits of Hugging Face's") {
  const test::Golden golden = test::golden("quantised/fp8-tensor");
  const Checkpoint theirs = Checkpoint::open(golden.folder);
  const Twins twins(theirs, OwnFiles::single);
  check_same_logits(twins.own(), theirs, golden.ids);
}

TEST_CASE("mistral form: FP8 rows of Q and K with a scale each move with their scales") {
  const test::Golden golden = test::golden("quantised/fp8-channel");
  const Checkpoint theirs = Checkpoint::open(golden.folder);
  const Twins twins(theirs, OwnFiles::single);
  check_same_logits(twins.own(), theirs, golden.ids);
}

TEST_CASE("mistral form: FP8 weights of latent attention and its experts") {
  const test::FamilyModel model("mistral4");
  test::OwnTensors coded = test::own_tensors(model.checkpoint), decoded = coded;
  for (auto& [name, tensor] : decoded) {
    const bool is_plain = name.find("norm") != name.npos || name.find(".gate.") != name.npos ||
                          !name.starts_with("layers.");
    if (is_plain) continue;
    constexpr float kScale = 0.001f;
    std::string codes, numbers;
    for (size_t at = 0; at < tensor.bytes.size(); at += sizeof(float)) {
      float value = 0;
      std::memcpy(&value, tensor.bytes.data() + at, sizeof value);
      const uint8_t code = fp8_encode<Fp8Format::e4m3fn>(value / kScale);
      codes += static_cast<char>(code);
      value = fp8_decode<Fp8Format::e4m3fn>(code) * kScale;
      numbers.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    tensor.bytes = numbers;
    coded[name] = {DType::f8_e4m3, tensor.shape, codes};
    const std::string module = name.substr(0, name.rfind('.'));
    const std::string scale(reinterpret_cast<const char*>(&kScale), sizeof kScale);
    coded[module + ".qscale_weight"] = {DType::f32, Shape{}, scale};
    coded[module + ".qscale_act"] = {DType::f32, Shape{}, scale};
  }
  const test::TempDir folder;
  const std::string params = test::params_of(model.checkpoint.config());
  test::write_own_form(folder / "decoded", params, decoded);
  test::write_own_form(
      folder / "coded",
      json_with_member(params, "quantization",
                       R"({"qformat_weight": "fp8_e4m3", "qscheme_act": "TENSOR"})"),
      coded);
  check_same_logits(Checkpoint::open(folder / "coded"), Checkpoint::open(folder / "decoded"),
                    model.ids);
}

TEST_CASE("mistral form: without apply_scale, latent attention scales no scores") {
  const test::FamilyModel model(
      "mistral4", "rope_parameters",
      R"({"rope_type": "yarn", "rope_theta": 30.0, "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1,
          "original_max_position_embeddings": 16, "attention_factor": 1.0,
          "llama_4_scaling_beta": 0.3, "partial_rotary_factor": 0.375})");
  const Twins twins(model.checkpoint, OwnFiles::single);
  check_same_logits(twins.own(), model.checkpoint, model.ids);
}

}  // namespace fp8kv
