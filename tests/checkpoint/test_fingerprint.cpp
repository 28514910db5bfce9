#include <doctest/doctest.h>

#include "base/digest.h"
#include "checkpoint/identity/fingerprint.h"
#include "config/describe/describe_model.h"
#include "support/expect_error.h"
#include "support/models/tiny_checkpoint.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

std::string fingerprint_of(const fs::path& folder) {
  const Checkpoint checkpoint = Checkpoint::open(folder);
  return model_fingerprint(checkpoint, describe_model(checkpoint.config()));
}

test::TinyConfig wide_config() {
  test::TinyConfig config = test::tiny_config();
  config.architecture = "Qwen2ForCausalLM";
  config.qkv_bias = true;
  config.dim = 192;  // 12,288 bytes of K or V weights, more than four blocks
  return config;
}

// The fingerprint of the wide model with some tensors renamed or changed by `edit`.
template <typename Edit>
std::string fingerprint_after(Edit edit, int n_shards = 1, DType dtype = DType::f32) {
  const test::TempDir temp;
  const test::TinyConfig config = wide_config();
  test::write_tiny_checkpoint(temp / "m", config);
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(config);
  for (test::TinyTensor& tensor : tensors) edit(tensor);
  if (n_shards > 1) fs::remove(temp / "m/model.safetensors");
  test::write_tiny_weights(temp / "m", tensors, dtype, n_shards);
  return fingerprint_of(temp / "m");
}

std::string unchanged() {
  return fingerprint_after([](test::TinyTensor&) {});
}

}  // namespace

TEST_CASE("fingerprint: is the digest of the header's words") {
  Sha256 expected;
  for (const char* name : {"layers.0.self_attn.k_proj.weight", "layers.0.self_attn.k_proj.bias",
                           "layers.0.self_attn.v_proj.weight", "layers.0.self_attn.v_proj.bias",
                           "layers.1.self_attn.k_proj.weight", "layers.1.self_attn.k_proj.bias",
                           "layers.1.self_attn.v_proj.weight", "layers.1.self_attn.v_proj.bias"}) {
    for (const test::TinyTensor& tensor : test::tiny_tensors(wide_config())) {
      if (tensor.name != cat("model.", name)) continue;
      expected.add(cat(name, " F32 ", tensor.shape.text(), "\n"));
      const std::string_view data(reinterpret_cast<const char*>(tensor.values.data()),
                                  tensor.values.size() * 4);
      if (data.size() == 64) expected.add(data);
      if (data.size() == 12288) {
        for (const size_t offset : {0, 3754, 7509, 11264}) expected.add(data.substr(offset, 1024));
      }
    }
  }
  CHECK(unchanged() == "kv-proj-v1:" + expected.hex());
}

// A Python script computed these from the same description.
TEST_CASE("fingerprint: real models have the ones computed elsewhere") {
  const auto f32 = test::shared_data("models/stories260K-hf-f32");
  const auto bf16 = test::shared_data("models/stories260K-hf-bf16-sharded");
  if (!f32 || !bf16) return;
  CHECK(fingerprint_of(*f32) ==
        "kv-proj-v1:729328f6d3d94b5df37d0d7fce4c4d044f044accf5dc0e2d54b29f26e6ff66f0");
  CHECK(fingerprint_of(*bf16) ==
        "kv-proj-v1:b37d2d366b584fe2a4fc5ab20d1d07258bb487c90418b854e1d225d7f4cb61eb");
}

TEST_CASE("fingerprint: sharding, other tensors and prefixes do not change it") {
  CHECK(fingerprint_after([](test::TinyTensor&) {}, 3) == unchanged());
  CHECK(fingerprint_after([](test::TinyTensor& tensor) {
          if (tensor.name.find("q_proj") != std::string::npos) tensor.values[0] += 1;
        }) == unchanged());
  CHECK(fingerprint_after([](test::TinyTensor& tensor) {
          if (tensor.name.starts_with("model.")) tensor.name = "language_" + tensor.name;
        }) == unchanged());
  CHECK(fingerprint_after([](test::TinyTensor& tensor) {
          if (tensor.name.starts_with("model.")) tensor.name = tensor.name.substr(6);
        }) == unchanged());
}

TEST_CASE("fingerprint: a change of any K or V weight or bias changes it") {
  const auto changed_by = [](const char* name, size_t element) {
    return fingerprint_after([&](test::TinyTensor& tensor) {
      if (tensor.name == name) tensor.values[element] += 1;
    });
  };
  const std::string before = unchanged();
  CHECK(changed_by("model.layers.0.self_attn.k_proj.weight", 0) != before);
  CHECK(changed_by("model.layers.1.self_attn.v_proj.weight", 3071) != before);
  CHECK(changed_by("model.layers.1.self_attn.k_proj.bias", 15) != before);
  CHECK(changed_by("model.layers.0.self_attn.v_proj.bias", 0) != before);
  CHECK(fingerprint_after([](test::TinyTensor&) {}, 1, DType::bf16) != before);
}

TEST_CASE("fingerprint: K and V that change places change it") {
  CHECK(fingerprint_after([](test::TinyTensor& tensor) {
          for (const auto& [from, to] : {std::pair("k_proj", "v_proj"), {"v_proj", "k_proj"}}) {
            const size_t at = tensor.name.find(from);
            if (at == std::string::npos) continue;
            tensor.name.replace(at, 6, to);
            return;
          }
        }) != unchanged());
}

TEST_CASE("fingerprint: fused projections count, other attentions are not taken for them") {
  const auto rename = [](test::TinyTensor& tensor, const char* from, const char* to) {
    const size_t at = tensor.name.find(from);
    if (at != std::string::npos) tensor.name.replace(at, std::string(from).size(), to);
  };
  const auto fused = [&](float first) {
    return fingerprint_after([&](test::TinyTensor& tensor) {
      rename(tensor, "q_proj", "qkv_proj");
      rename(tensor, ".k_proj", ".key");
      rename(tensor, ".v_proj", ".value");
      if (tensor.name.ends_with("layers.1.self_attn.qkv_proj.weight")) tensor.values[0] = first;
    });
  };
  CHECK(fused(1) == fused(1));
  CHECK(fused(1) != fused(2));
  // A vision tower with fewer layers than the language model.
  CHECK(fingerprint_after([&](test::TinyTensor& tensor) {
          if (tensor.name.find("layers.0.") == std::string::npos) return;
          if (tensor.name.find("_norm") != std::string::npos)
            tensor.name = "aa.layers.0.self_attn.k_proj.weight";
          if (tensor.name.find("up_proj") != std::string::npos)
            tensor.name = "aa.layers.0.self_attn.v_proj.weight";
        }) == unchanged());
}

TEST_CASE("fingerprint: Nemotron-H's attention counts under its own name") {
  const auto renamed = [](test::TinyTensor& tensor) {
    const size_t at = tensor.name.find("self_attn");
    if (at != std::string::npos) tensor.name.replace(at, 9, "mixer");
  };
  Sha256 expected;
  for (const char* name : {"layers.0.mixer.k_proj.weight", "layers.0.mixer.v_proj.weight",
                           "layers.1.mixer.k_proj.weight", "layers.1.mixer.v_proj.weight"}) {
    for (test::TinyTensor tensor : test::tiny_tensors(test::tiny_config())) {
      renamed(tensor);
      if (tensor.name != cat("model.", name)) continue;
      expected.add(cat(name, " F32 ", tensor.shape.text(), "\n"));
      expected.add({reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * 4});
    }
  }
  const test::TempDir temp;
  test::write_tiny_checkpoint(temp / "m", test::tiny_config());
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(test::tiny_config());
  for (test::TinyTensor& tensor : tensors) renamed(tensor);
  test::write_tiny_weights(temp / "m", tensors, DType::f32);
  CHECK(fingerprint_of(temp / "m") == "kv-proj-v1:" + expected.hex());
}

TEST_CASE("fingerprint: a model without such projections has none") {
  const test::TempDir temp;
  test::write_tiny_checkpoint(temp / "m", test::tiny_config());
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(test::tiny_config());
  std::erase_if(tensors, [](const test::TinyTensor& tensor) {
    return tensor.name.find("v_proj") != std::string::npos;
  });
  test::write_tiny_weights(temp / "m", tensors, DType::f32);
  CHECK(test::error_of([&] { fingerprint_of(temp / "m"); }) ==
        cat(quote((temp / "m").string()),
            ": has no K and V projections to identify the model by; looked for "
            "'layers.0.self_attn.k_proj.weight' and the like under any prefix"));
}

}  // namespace fp8kv
