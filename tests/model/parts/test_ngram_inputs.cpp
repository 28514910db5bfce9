// N-grams of Qwen 4 Exp: what files say of their hashes, and the bytes that a step reads of them.
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/model/read_model_config.h"
#include "formats/safetensors.h"
#include "json/json.h"
#include "model/cache/capacity.h"
#include "model/ngram_inputs.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

constexpr const char* kFactors = "model.layers.2.ple.ple_embedding.layer_multipliers";

// Adds a tensor of whole numbers to the golden model in `folder`, in a shard of its own.
void add_numbers(const std::filesystem::path& folder, const std::vector<int64_t>& numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  const ConstTensorView view{reinterpret_cast<const std::byte*>(numbers.data()), DType::i64,
                             Shape{count}};
  std::ofstream(folder / "more.safetensors", std::ios::binary)
      << safetensors_bytes({{kFactors, view}}, {});
  JsonWriter index;
  index.begin_object().key("weight_map").begin_object();
  const Checkpoint plain = Checkpoint::open(folder);
  for (const auto& [name, location] : plain.tensors()) index.member(name, "rest.safetensors");
  index.member(kFactors, "more.safetensors").end_object().end_object();
  std::filesystem::rename(folder / "model.safetensors", folder / "rest.safetensors");
  std::ofstream(folder / "model.safetensors.index.json") << index.text();
}

// Opens the golden model with these factors of the hashes.
void open_with(const std::vector<int64_t>& numbers) {
  const test::TempDir folder;
  test::write_golden_model(folder / "model", test::family_golden("qwen4-exp"));
  add_numbers(folder / "model", numbers);
  const Checkpoint checkpoint = Checkpoint::open(folder / "model");
  const ModelConfig config = read_model_config(checkpoint);
  const auto backend = make_cpu_backend(1);
  const NgramInputs inputs(checkpoint, config, *backend);
}

}  // namespace

TEST_CASE("n-grams: files with other factors than the config gives are refused") {
  // Those that transformers 5.24 makes of the golden's config.
  open_with({73077407744147129, 30775552109301093, 36597855298209559});
  for (const std::vector<int64_t>& other :
       {std::vector<int64_t>{73077407744147129, 30775552109301093, 36597855298209561},
        {73077407744147129}}) {
    CHECK(test::error_of([&] { open_with(other); })
              .find("layer_multipliers': has other numbers than config.json gives, expected 3 in "
                    "I64, of "
                    "which the first is 73077407744147129") != std::string::npos);
  }
}

TEST_CASE("n-grams: a decode step reads few rows of their tables") {
  const test::FamilyModel model("qwen4-exp");
  const WeightBytes bytes = weight_bytes(model.checkpoint);
  const uint64_t tables = 240 * 3 * sizeof(float), embedding = 77 * 32 * sizeof(float);
  CHECK(bytes.read == bytes.all - tables - embedding);
}

}  // namespace fp8kv
