#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "checkpoint/identity/model_identity.h"
#include "checkpoint/model/read_model_config.h"
#include "checkpoint/model_weights.h"
#include "formats/safetensors.h"
#include "support/expect_error.h"
#include "support/models/goldens.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

// A golden's folder with changed tensors or config.
class Folder {
 public:
  explicit Folder(const char* name) : golden_(test::golden(name).folder) {
    const Checkpoint checkpoint = Checkpoint::open(golden_);
    for (const auto& [tensor, location] : checkpoint.tensors()) {
      tensors_[tensor] = {location.entry.dtype, location.entry.shape, checkpoint.read(tensor)};
    }
    config_ = test::read_file(golden_ / "config.json");
  }

  void remove(const std::string& tensor) { REQUIRE(tensors_.erase(tensor) == 1); }
  void set(const std::string& tensor, DType dtype, const Shape& shape, const std::string& bytes) {
    tensors_[tensor] = {dtype, shape, bytes};
  }
  std::string& bytes(const std::string& tensor) { return tensors_.at(tensor).bytes; }
  void edit_config(const std::string& from, const std::string& to) {
    const size_t at = config_.find(from);
    REQUIRE(at != std::string::npos);
    config_.replace(at, from.size(), to);
  }

  Checkpoint open() const {
    std::vector<TensorToWrite> items;
    for (const auto& [name, tensor] : tensors_) {
      const auto* data = reinterpret_cast<const std::byte*>(tensor.bytes.data());
      items.push_back({name, ConstTensorView(data, tensor.dtype, tensor.shape)});
    }
    temp_.write("m/model.safetensors", safetensors_bytes(items, {}));
    temp_.write("m/config.json", config_);
    return Checkpoint::open(temp_ / "m");
  }
  std::filesystem::path config_path() const { return temp_ / "m/config.json"; }
  std::string name() const { return quote((temp_ / "m").string()); }
  std::string error() const {
    return test::error_of([&] { static_cast<void>(read_model_config(open())); });
  }

 private:
  struct Stored {
    DType dtype;
    Shape shape;
    std::string bytes;
  };

  std::filesystem::path golden_;
  std::map<std::string, Stored> tensors_;
  std::string config_;
  test::TempDir temp_;
};

const std::string kQ = "model.layers.1.self_attn.q_proj";

// The first layer's tensor of this name.
Weight weight_of(const ModelWeights& weights, const ModelConfig& config, const std::string& name) {
  for (const ModelTensor& tensor : layer_tensors(config, 1)) {
    if (tensor.name == name) return weights.at(tensor);
  }
  FAIL("no such tensor");
  return {};
}

// Replaces quantised weights by the plain numbers that they decode to.
void make_plain(Folder& folder) {
  const Checkpoint checkpoint = folder.open();
  const ModelConfig config = read_model_config(checkpoint);
  const ModelWeights weights(checkpoint, config.dtype);
  for (int64_t layer = 0; layer < config.n_layers(); ++layer) {
    for (const ModelTensor& tensor : layer_tensors(config, layer)) {
      const Weight weight = weights.at(tensor);
      if (!weight.stored) continue;
      for (const TensorEntry* entry : tensors_of(*weight.stored)) folder.remove(entry->name);
      folder.set(tensor.name, weight.dtype, weight.shape, weights.read(weight, 0, weight.bytes()));
    }
  }
  folder.edit_config("\"quantization_config\"", "\"was\"");
}

}  // namespace

TEST_CASE("model_weights: the identity of a model is that of what its weights are worth") {
  for (const char* name : {"quantised/fp8-moe", "quantised/packed-ordered", "quantised/awq"}) {
    CAPTURE(name);
    Folder folder(name);
    Checkpoint checkpoint = folder.open();
    const ModelIdentity quantised = model_identity(checkpoint, read_model_config(checkpoint));
    make_plain(folder);
    checkpoint = folder.open();
    const ModelConfig config = read_model_config(checkpoint);
    CHECK(config.stored_as == "");
    CHECK(model_identity(checkpoint, config) == quantised);
  }
}

TEST_CASE("model_weights: what the config leaves as it was may not be quantised") {
  Folder folder("quantised/packed-int4");
  folder.edit_config("\"lm_head\"", "\"re:.*q_proj$\"");
  CHECK(folder.error() ==
        cat(folder.name(),
            ": tensor 'model.layers.0.self_attn.q_proj.weight_packed': is quantised "
            "(pack-quantized), but ",
            quote(folder.config_path().string()),
            ": quantization_config.ignore leaves 'model.layers.0.self_attn.q_proj' as it was"));
}

TEST_CASE("model_weights: what the config quantises may not be plain") {
  Folder folder("quantised/packed-int4");
  const Checkpoint checkpoint = folder.open();
  const ModelConfig config = read_model_config(checkpoint);
  const ModelWeights weights(checkpoint, config.dtype);
  const Weight weight = weight_of(weights, config, kQ + ".weight");
  folder.set(weight.name, weight.dtype, weight.shape, weights.read(weight, 0, weight.bytes()));
  for (const TensorEntry* entry : tensors_of(*weight.stored)) folder.remove(entry->name);
  CHECK(folder.error() == cat(folder.name(), ": tensor '", kQ,
                              ".weight': is F32, but the "
                              "quantization_config of config.json quantises '",
                              kQ, "' too"));
  folder.edit_config("\"lm_head\"", "\"lm_head\", \"" + kQ + "\"");
  CHECK(read_model_config(folder.open()).stored_as ==
        "pack-quantized, a scale for each 16 columns of a row");
}

TEST_CASE("model_weights: a form that is not read, and a missing part, are named") {
  Folder folder("quantised/gptq");
  folder.remove(kQ + ".qzeros");
  CHECK(folder.error() == cat(folder.name(), ": tensor '", kQ,
                              ".qweight': is I32, and there is no '", kQ, ".qzeros' beside it"));
  folder.remove(kQ + ".qweight");
  CHECK(folder.error() ==
        cat(folder.name(), ": tensor '", kQ, ".weight': is missing; '",
            (folder.open().folder() / "config.json").string(),
            "': quantization_config: the weights are quantised (quant_method 'gptq'), and what is "
            "computed with are F32, F16 and BF16 weights, or weights stored as fp8, int8, nvfp4, "
            "mxfp4, pack-quantized, gptq or awq"));
}

TEST_CASE("model_weights: a scale that is no number is found when the weight is") {
  Folder folder("quantised/awq");
  std::string& scales = folder.bytes(kQ + ".scales");
  scales[6] = '\x00';
  scales[7] = '\x7e';
  const Checkpoint checkpoint = folder.open();
  const ModelConfig config = read_model_config(checkpoint);
  const ModelWeights weights(checkpoint, config.dtype);
  CHECK(
      test::error_of([&] { weights.check_values(weight_of(weights, config, kQ + ".weight")); }) ==
      cat(folder.name(), ": tensor '", kQ, ".scales': element 3 is nan, expected a finite scale"));
}

}  // namespace fp8kv
