// The files and tensors of a folder in Mistral's own format.
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/files/mistral_names.h"
#include "checkpoint/model/read_model_config.h"
#include "support/expect_error.h"
#include "support/forms/mistral_form.h"
#include "support/models/family_model.h"
#include "support/says.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

using test::OwnFiles;
using test::says;

// A small Mistral in its own format, which a test changes before it is written.
struct OwnModel {
  explicit OwnModel(const char* name = "mistral") {
    const test::FamilyModel model(name);
    params = test::params_of(model.checkpoint.config());
    tensors = test::own_tensors(model.checkpoint);
  }
  Checkpoint open(OwnFiles files = OwnFiles::single) const {
    test::write_own_form(path, params, tensors, files);
    return Checkpoint::open(path);
  }
  std::string refusal(OwnFiles files = OwnFiles::single) const {
    return test::error_of([&] { read_model_config(open(files)); });
  }
  std::string file(const char* leaf) const { return quote((path / leaf).string()); }

  test::TempDir folder;
  std::filesystem::path path = folder / "own";
  std::string params;
  test::OwnTensors tensors;
};

}  // namespace

TEST_CASE("mistral files: a folder with config.json too is one of Hugging Face") {
  const OwnModel model;
  model.folder.write("own/config.json", "{}");
  CHECK(test::error_of([&] { model.open(); }) ==
        cat(quote(model.path.string()),
            ": has neither model.safetensors nor model.safetensors.index.json to say which of its "
            ".safetensors files are the model (the first is 'consolidated.safetensors')"));
}

TEST_CASE("mistral files: tensors have the names of transformers, and messages those of the file") {
  OwnModel model;
  const Checkpoint checkpoint = model.open();
  CHECK(checkpoint.find("model.layers.1.self_attn.q_proj.weight") != nullptr);
  CHECK(checkpoint.find("layers.1.attention.wq.weight") == nullptr);
  CHECK(checkpoint.config_path() == model.path / "params.json");
  model.tensors.erase("layers.1.feed_forward.w3.weight");
  CHECK(model.refusal() == cat(quote(model.path.string()),
                               ": has no tensor 'layers.1.feed_forward.w3.weight' (did "
                               "you mean 'layers.0.feed_forward.w3.weight'?)"));
}

TEST_CASE("mistral files: a tensor of another shape") {
  OwnModel model;
  test::OwnTensor& wk = model.tensors.at("layers.0.attention.wk.weight");
  wk.shape = Shape{wk.shape[1], wk.shape[0]};
  CHECK(model.refusal() == cat(quote(model.path.string()),
                               ": tensor 'layers.0.attention.wk.weight': has the shape [32, 16], "
                               "expected [16, 32] from params.json"));
}

TEST_CASE("mistral files: no folder is made from one") {
  const OwnModel model;
  const Checkpoint checkpoint = model.open();
  CHECK(test::error_of([&] { checkpoint.check_is_hugging_face(); }) ==
        cat(quote(model.path.string()),
            ": is in Mistral's own format (params.json), expected the format of Hugging Face: it "
            "is not known how runtimes read scales in this one"));
}

TEST_CASE("mistral files: an unknown tensor") {
  OwnModel model;
  model.tensors["layers.0.attention.wz.weight"] = model.tensors.at("norm.weight");
  CHECK(model.refusal() ==
        cat(model.file("consolidated.safetensors"),
            ": tensor 'layers.0.attention.wz.weight': is not known in Mistral's format"));
}

TEST_CASE("mistral files: scales of blocks of Q are refused") {
  OwnModel model;
  model.tensors["layers.0.attention.wq.qscale_weight"] = {DType::f32, Shape{2, 1},
                                                          std::string(8, '\0')};
  CHECK(says(model.refusal(),
             "tensor 'layers.0.attention.wq.qscale_weight': has the shape [2, 1], "
             "expected one scale, or one for each of 4 x 8 rows"));
}

TEST_CASE("mistral files: a shard that is not there") {
  for (const OwnFiles files : {OwnFiles::numbered, OwnFiles::indexed}) {
    const OwnModel model;
    model.open(files);
    std::filesystem::remove(model.path / "consolidated-00002-of-00002.safetensors");
    const char* by = files == OwnFiles::indexed ? "consolidated.safetensors.index.json"
                                                : "consolidated-00001-of-00002.safetensors";
    CHECK(test::error_of([&] { Checkpoint::open(model.path); }) ==
          cat(model.file(by),
              ": names the shard 'consolidated-00002-of-00002.safetensors', which "
              "the folder does not have"));
  }
}

TEST_CASE("mistral files: shards of two models") {
  const OwnModel model;
  model.open(OwnFiles::numbered);
  model.folder.write("own/consolidated-00001-of-00003.safetensors", "");
  CHECK(says(test::error_of([&] { Checkpoint::open(model.path); }), "is not one of the shards of"));
}

TEST_CASE("mistral files: a folder without weights") {
  const OwnModel model;
  model.open();
  std::filesystem::remove(model.path / "consolidated.safetensors");
  CHECK(test::error_of([&] { Checkpoint::open(model.path); }) ==
        cat(quote(model.path.string()),
            ": has no weights, expected consolidated.safetensors or "
            "consolidated.safetensors.index.json"));
}

TEST_CASE("mistral files: parts of a tensor are those of the tensor in order") {
  const OwnModel model;
  const Checkpoint checkpoint = model.open();
  const std::string name = "model.layers.0.self_attn.k_proj.weight";
  const std::string all = checkpoint.read(name);
  const MappedTensor mapped = checkpoint.map(name);
  CHECK(all == std::string(reinterpret_cast<const char*>(mapped.view.data), all.size()));
  CHECK(all != model.tensors.at("layers.0.attention.wk.weight").bytes);
  for (const uint64_t offset : {0, 1, 127, 128, 300}) {
    CHECK(checkpoint.read(name, offset, 200) == all.substr(offset, 200));
  }
}

TEST_CASE("mistral names: scales of the cache have the names that vLLM gives them") {
  CHECK(name_in_transformers("layers.3.attention.k_fake_quantizer.qscale_act", "") ==
        "model.layers.3.self_attn.k_scale");
  CHECK(name_in_mistral("model.layers.3.self_attn.v_scale") ==
        "layers.3.attention.v_fake_quantizer.qscale_act");
  CHECK(name_in_transformers("layers.3.experts.12.w2.qscale_weight", "language_model.") ==
        "language_model.model.layers.3.mlp.experts.12.down_proj.weight_scale");
  CHECK_FALSE(name_in_transformers("layers.x.attention.wq.weight", ""));
  CHECK_FALSE(name_in_transformers("layers.3.experts..w2.weight", ""));
}

}  // namespace fp8kv
