#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/identity/made_for.h"
#include "checkpoint/identity/model_identity.h"
#include "checkpoint/model/read_model_config.h"
#include "core/numbers/half.h"
#include "equalize/equalized_folder.h"
#include "equalize/find_exponents.h"
#include "equalize/fold_places.h"
#include "equalize/logits_digest.h"
#include "support/expect_error.h"
#include "support/models/family_model.h"
#include "support/models/goldens.h"
#include "support/models/tiny_checkpoint.h"
#include "support/models/tiny_config.h"
#include "support/places.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

// Arbitrary exact factors that no search would find, different for each group and unit.
std::vector<LayerFactors> some_factors(const Checkpoint& checkpoint, const ModelConfig& config) {
  std::vector<LayerFactors> layers(static_cast<size_t>(config.n_layers()));
  for (int64_t i = 0; i < config.n_layers(); ++i) {
    if (!config.writes_cache(i)) continue;
    LayerFactors& layer = layers[static_cast<size_t>(i)];
    const int64_t units = fold_units(config, i);
    layer.groups = channel_groups(config, i);
    const AllowedExponents allowed =
        exact_exponents(checkpoint, folded_tensors(checkpoint, config, i), units, layer.groups);
    for (size_t unit = 0; unit < static_cast<size_t>(units); ++unit) {
      Exponents exponents;
      for (size_t g = 0; g < layer.groups.size(); ++g) {
        const int wanted = static_cast<int>((3 * g + 2 * unit) % 7) - 3;
        exponents.push_back(allowed[unit][g].has(wanted) ? wanted : 0);
      }
      layer.exponents.push_back(exponents);
      layer.kept.push_back(true);
    }
  }
  return layers;
}

bool any_factor(const std::vector<LayerFactors>& layers) {
  const FactorCounts counts = count_factors(layers);
  return counts.least < 0 || counts.most > 0;
}

std::string digest_of(const Checkpoint& checkpoint, const ModelConfig& config,
                      const std::vector<int32_t>& ids) {
  const auto backend = make_cpu_backend(1);
  Log log(Verbosity::quiet);
  return logits_digest({checkpoint, config, *backend}, {ids}, 1, log);
}

std::string refusal_of(const Checkpoint& checkpoint, const ModelConfig& config) {
  try {
    check_foldable(checkpoint, config);
  } catch (const Error& error) {
    CHECK(!error.help().empty());
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("equalized folder: every family's logits keep every bit, or it is refused by name") {
  std::set<std::string> folded;
  for (const std::string& name : test::family_cases()) {
    CAPTURE(name);
    const test::FamilyModel model(name);
    if (folded.contains(model.config.architecture)) continue;
    const std::string refusal = refusal_of(model.checkpoint, model.config);
    if (!refusal.empty()) {
      CHECK(refusal.find(model.config.architecture) != refusal.npos);
      continue;
    }
    const std::vector<LayerFactors> factors = some_factors(model.checkpoint, model.config);
    if (!any_factor(factors)) continue;
    const test::TempDir folder;
    std::filesystem::create_directory(folder / "eq");
    write_equalized(model.checkpoint, model.config, factors, "{}", folder / "eq");
    const Checkpoint made = Checkpoint::open(folder / "eq");
    const ModelConfig config = read_model_config(made);
    const std::vector<int32_t> ids(model.ids.begin(), model.ids.begin() + 8);
    CHECK(digest_of(made, config, ids) == digest_of(model.checkpoint, model.config, ids));
    folded.insert(model.config.architecture);
  }
  CHECK(folded.size() >= 10);
}

TEST_CASE("equalized folder: every form of quantised weights keeps every bit, or is refused") {
  // Models with one scale for several rows, or without a place for factors.
  const std::map<std::string, std::string> refused = {
      {"fp8-block", "is F32 [2, 2] (fp8, a scale for each 24 x 20), expected a scale for each row"},
      {"fp8-block-ct", "is F32 [1, 1] (fp8, one scale), expected a scale for each row"},
      {"fp8-tensor", "is F32 [] (fp8, one scale), expected a scale for each row"},
      {"llama4-fp8-fbgemm", "normalises Q and K without weights"},
      {"llama4-fp8-modelopt", "normalises Q and K without weights"},
      {"llama4-nvfp4", "normalises Q and K without weights"},
      {"llmcompressor-fp8-block", "is F32 [1, 1] (fp8, one scale)"},
      {"modelopt-fp8", "is F32 [] (fp8, one scale)"},
      {"modelopt-fp8-blocks", "is F32 [] (fp8, one scale)"},
      {"quark-fp8", "is F32 [] (fp8, one scale)"},
      {"quark-int8", "is F32 [] (int8, one scale)"}};
  const std::filesystem::path goldens = test::source_dir() / "tests/golden/quantised";
  for (const auto& entry : std::filesystem::directory_iterator(goldens)) {
    const std::string name = entry.path().filename().string();
    CAPTURE(name);
    const test::Golden golden = test::golden(("quantised/" + name).c_str());
    const Checkpoint checkpoint = Checkpoint::open(golden.folder);
    const ModelConfig config = read_model_config(checkpoint);
    const auto expected = refused.find(name);
    const std::string refusal = refusal_of(checkpoint, config);
    CHECK(refusal.empty() == (expected == refused.end()));
    if (expected != refused.end()) CHECK(refusal.find(expected->second) != std::string::npos);
    if (!refusal.empty()) continue;
    const std::vector<LayerFactors> factors = some_factors(checkpoint, config);
    // Random weights have large and small scales in each row, which leaves E4M3 no room.
    if (!any_factor(factors) && name.ends_with("-nvfp4")) continue;
    CHECK(any_factor(factors));
    const test::TempDir folder;
    std::filesystem::create_directory(folder / "eq");
    write_equalized(checkpoint, config, factors, "{}", folder / "eq");
    const Checkpoint made = Checkpoint::open(folder / "eq");
    CHECK(fingerprint_of(model_identity(made, config)) !=
          fingerprint_of(model_identity(checkpoint, config)));
    const std::vector<int32_t> ids(golden.ids.begin(), golden.ids.begin() + 8);
    CHECK(digest_of(made, read_model_config(made), ids) == digest_of(checkpoint, config, ids));
  }
}

TEST_CASE("equalized folder: only weights of K and Q change, each by its power of two") {
  const test::TempDir folder;
  test::TinyConfig tiny = test::tiny_config("Qwen2ForCausalLM");
  tiny.dtype = DType::bf16;
  test::write_tiny_checkpoint(folder / "m", tiny, {.n_shards = 2});
  const Checkpoint checkpoint = Checkpoint::open(folder / "m");
  const ModelConfig config = read_model_config(checkpoint);
  std::vector<LayerFactors> factors = some_factors(checkpoint, config);
  for (LayerFactors& layer : factors) {
    for (Exponents& unit : layer.exponents) unit = {0, 2, 0, -1};
  }
  std::filesystem::create_directory(folder / "eq");
  write_equalized(checkpoint, config, factors, "{}", folder / "eq");
  const Checkpoint made = Checkpoint::open(folder / "eq");
  for (const auto& [name, location] : checkpoint.tensors()) {
    CAPTURE(name);
    const bool q = name.find("q_proj") != name.npos, k = name.find("k_proj") != name.npos;
    const std::string before = checkpoint.read(name), after = made.read(name);
    REQUIRE(made.at(name).begin == location.entry.begin);
    if (!q && !k) {
      CHECK(before == after);
      continue;
    }
    // RoPE pairs of a head of 8 are half a head apart: pair 1 is channels 1 and 5, pair 3 channels
    // 3 and 7.
    const size_t columns = before.size() / 2 / static_cast<size_t>(location.entry.shape[0]);
    for (size_t i = 0; i < before.size() / 2; ++i) {
      const size_t pair = i / columns % 8 % 4;
      const float factor = pair == 1 ? 4.0f : pair == 3 ? 0.5f : 1.0f;
      const auto at = [&](const std::string& bytes) {
        return bf16_to_float(static_cast<uint16_t>(static_cast<uint8_t>(bytes[2 * i]) |
                                                   static_cast<uint8_t>(bytes[2 * i + 1]) << 8));
      };
      REQUIRE(at(after) == at(before) * (k ? factor : 1 / factor));
    }
  }
}

TEST_CASE("equalized folder: models that factors would change are refused with a way out") {
  const test::TempDir folder;
  test::TinyConfig tiny = test::tiny_config();
  tiny.dtype = DType::f16;
  test::write_tiny_checkpoint(folder / "m", tiny);
  const Checkpoint checkpoint = Checkpoint::open(folder / "m");
  ModelConfig config = read_model_config(checkpoint);
  CHECK(refusal_of(checkpoint, config).find("float16 weights") != std::string::npos);
  config.dtype = DType::bf16;
  CHECK(refusal_of(checkpoint, config).empty());
  config.block.qk_norm = QkNorm::plain;
  CHECK(refusal_of(checkpoint, config).find("without weights") != std::string::npos);
  config.block.qk_norm = QkNorm::none;
  config.layers[0].v_is_k = true;
  CHECK(refusal_of(checkpoint, config).find("takes V from") != std::string::npos);
  config.layers[0].v_is_k = false;
  config.layers[1].cache_of = 0;
  CHECK(refusal_of(checkpoint, config).find("cache of another") != std::string::npos);
  config.layers[1].cache_of = 1;
  config.latent.emplace();
  CHECK(refusal_of(checkpoint, config).find("latent attention") != std::string::npos);
}

TEST_CASE("equalized folder: scales made for the original are refused") {
  const test::TempDir folder;
  test::TinyConfig tiny = test::tiny_config();
  test::write_tiny_checkpoint(folder / "m", tiny);
  const Checkpoint checkpoint = Checkpoint::open(folder / "m");
  const ModelConfig config = read_model_config(checkpoint);
  KvScales scales;
  scales.n_kv_heads = 2;
  scales.layers.assign(2, {.k = {0.5f}, .v = {0.5f}});
  scales.provenance.model_identity = model_identity(checkpoint, config);
  scales.provenance.model_fingerprint = fingerprint_of(*scales.provenance.model_identity);
  CHECK_NOTHROW(check_made_for(scales, checkpoint, config, "'scales.json'"));

  std::filesystem::create_directory(folder / "eq");
  const std::vector<LayerFactors> factors = some_factors(checkpoint, config);
  const EqualizeRecord record{.tool_version = "1",
                              .model = "m",
                              .fingerprint = scales.provenance.model_fingerprint,
                              .format = "int8_per_token_head"};
  write_equalized(checkpoint, config, factors, record_text(record, factors), folder / "eq");
  const Checkpoint made = Checkpoint::open(folder / "eq");
  const auto refusal = [&] {
    return test::error_of([&] { check_made_for(scales, made, config, "'scales.json'"); });
  };
  CHECK(refusal().find("was equalised for int8_per_token_head from 'm'") != std::string::npos);
  // Without the record, the weights show that it is another model.
  std::filesystem::remove(folder / "eq" / kEqualizeRecord);
  CHECK(refusal().find("was calibrated on another model") != std::string::npos);
  CHECK(refusal().find("equalised") == std::string::npos);
}

TEST_CASE("exact exponents: none overflows, becomes subnormal or rounds a sum with 1") {
  const test::TempDir folder;
  test::TinyConfig tiny = test::tiny_config();
  tiny.dtype = DType::bf16;
  tiny.n_layers = 1;
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(tiny);
  for (test::TinyTensor& each : tensors) {
    if (each.name.find("k_proj") == each.name.npos) continue;
    each.values[0] = 0x1p125f;    // channel 0: two more doublings are exact
    each.values[32] = 0x1p-124f;  // channel 1: two more halvings are exact
    each.values[2 * 32] = 0.0f;   // channel 2: zero allows any factor
  }
  std::filesystem::create_directory(folder / "m");
  folder.write("m/config.json", test::tiny_config_json(tiny));
  test::write_tiny_weights(folder / "m", tensors, DType::bf16);
  const Checkpoint checkpoint = Checkpoint::open(folder / "m");
  const ModelConfig config = read_model_config(checkpoint);
  const AllowedExponents allowed = exact_exponents(
      checkpoint, folded_tensors(checkpoint, config, 0), 2, channel_groups(config, 0));
  CHECK(allowed[0][0].has(2));
  CHECK(!allowed[0][0].has(3));
  CHECK(allowed[0][1].has(-2));
  CHECK(!allowed[0][1].has(-3));
  CHECK(allowed[0][2].has(-8));
  CHECK(allowed[1][0].has(8));
}

TEST_CASE("exact exponents: scales of F16 neither overflow nor become subnormal") {
  const test::TempDir folder;
  std::filesystem::copy(test::source_dir() / "tests/golden/quantised/packed-int4", folder / "m",
                        std::filesystem::copy_options::recursive);
  const std::string name = "model.layers.0.self_attn.k_proj.weight_scale";
  const TensorEntry scales = Checkpoint::open(folder / "m").at(name);
  std::string bytes = test::read_file(folder / "m/model.safetensors");
  const auto put = [&](size_t element, float value) {
    const uint16_t half = f16_from_float(value);
    std::memcpy(bytes.data() + scales.begin + 2 * element, &half, 2);
  };
  put(0, 0x1p13f);   // two groups in a row: row 0 may be doubled twice
  put(2, 0x1p-13f);  // row 1 may be halved once
  folder.write("m/model.safetensors", bytes);
  const Checkpoint checkpoint = Checkpoint::open(folder / "m");
  const ModelConfig config = read_model_config(checkpoint);
  const AllowedExponents allowed = exact_exponents(
      checkpoint, folded_tensors(checkpoint, config, 0), 2, channel_groups(config, 0));
  CHECK(allowed[0][0].has(2));
  CHECK(!allowed[0][0].has(3));
  CHECK(allowed[0][1].has(-1));
  CHECK(!allowed[0][1].has(-2));
}

}  // namespace fp8kv
