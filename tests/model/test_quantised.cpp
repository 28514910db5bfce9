// Models with quantised weights, against transformers' results with the decoded weights.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "base/log.h"
#include "calib/collect.h"
#include "checkpoint/model/read_model_config.h"
#include "config/families/tensor_table.h"
#include "core/numbers/fp8.h"
#include "formats/safetensors.h"
#include "generate/runner.h"
#include "model/weights/weight_loader.h"
#include "quantize/quantize_folder.h"
#include "quantize/schemes.h"
#include "support/backends/counting_backend.h"
#include "support/backends/logit_tap.h"
#include "support/models/family_model.h"
#include "support/models/goldens.h"
#include "support/models/run_model.h"
#include "support/models/streamed_model.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

constexpr double kAmaxTolerance = 1e-5;  // see test_families.cpp

std::vector<std::string> cases() {
  std::set<std::string> names;
  const auto folder = test::source_dir() / "tests/golden/quantised";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.insert("quantised/" + entry.path().filename().string());
  }
  return {names.begin(), names.end()};
}

void replace_all(std::string& text, const std::string& old, const std::string& now) {
  for (size_t at = text.find(old); at != text.npos; at = text.find(old, at)) {
    text.replace(at, old.size(), now);
  }
}

void check_amax(const std::vector<MagnitudeCounts>& heads, const Json& expected) {
  const std::vector<double> amax = test::numbers_of(expected);
  REQUIRE(heads.size() == amax.size());
  for (size_t head = 0; head < heads.size(); ++head) {
    CHECK(std::abs(heads[head].amax - amax[head]) < kAmaxTolerance * amax[head]);
  }
}

}  // namespace

TEST_CASE("quantised: each form is known by its name") {
  const auto form = [](const char* name) {
    return read_model_config(Checkpoint::open(test::golden(name).folder)).stored_as;
  };
  CHECK(cases().size() == 45);
  CHECK(form("llama-gqa") == "");
  CHECK(form("quantised/fp8-channel") == "fp8, a scale for each row");
  CHECK(form("quantised/fp8-tensor") == "fp8, one scale");
  CHECK(form("quantised/fp8-block") == "fp8, a scale for each 24 x 20");
  CHECK(form("quantised/fp8-block-ct") == "fp8, one scale");
  CHECK(form("quantised/mxfp8") ==
        "fp8, a scale for each 32 columns of a row; fp8, a scale for each row");
  CHECK(form("quantised/int8-zero") == "int8, a scale for each row");
  CHECK(form("quantised/nvfp4-modelopt") == "nvfp4, a scale for each 16 columns of a row");
  CHECK(form("quantised/nvfp4-ct") == "nvfp4, a scale for each 16 columns of a row");
  CHECK(form("quantised/mxfp4") ==
        "mxfp4, a scale for each 32 columns of a row; mxfp4, a scale for each row");
  CHECK(form("quantised/gpt-oss") ==
        "mxfp4, a scale for each 32 columns of a row; mxfp4, a scale for each row");
  CHECK(form("quantised/granite-moe-fp8") == "fp8, a scale for each row");
  CHECK(form("quantised/gemma4-fp8") == "fp8, a scale for each 8 x 20");
  CHECK(form("quantised/llama4-fp8-modelopt") == "fp8, one scale");
  CHECK(form("quantised/llama4-fp8-fbgemm") == "fp8, a scale for each row");
  CHECK(form("quantised/llama4-nvfp4") == "nvfp4, a scale for each 16 columns of a row");
  CHECK(form("quantised/packed-ordered") == "pack-quantized, a scale for each 16 columns of a row");
  CHECK(form("quantised/gptq") == "gptq, a scale for each 16 columns of a row");
  CHECK(form("quantised/gptq-v2") == "gptq, a scale for each row");
  CHECK(form("quantised/awq") == "awq, a scale for each 16 columns of a row");
  CHECK(form("quantised/llmcompressor-w4a16") ==
        "pack-quantized, a scale for each 32 columns of a row");
  CHECK(form("quantised/llmcompressor-w8a8") == "int8, a scale for each row");
  CHECK(form("quantised/llmcompressor-fp8-block") ==
        "fp8, a scale for each 128 x 128; fp8, one scale");
  CHECK(form("quantised/llmcompressor-nvfp4") == "nvfp4, a scale for each 16 columns of a row");
  CHECK(form("quantised/modelopt-nvfp4") == "nvfp4, a scale for each 16 columns of a row");
  CHECK(form("quantised/gptqmodel-ordered") == "gptq, a scale for each 32 columns of a row");
  CHECK(form("quantised/gptqmodel-zero") == "gptq, a scale for each 32 columns of a row");
  CHECK(form("quantised/autoawq") == "awq, a scale for each 32 columns of a row");
  CHECK(form("quantised/quark-fp8") == "fp8, one scale");
  CHECK(form("quantised/quark-fp8-rows") == "fp8, a scale for each row");
  CHECK(form("quantised/quark-int8") == "int8, one scale");
  CHECK(form("quantised/quark-mxfp4") == "mxfp4, a scale for each 32 columns of a row");
  CHECK(form("quantised/modelopt-fp8") == "fp8, one scale");
  CHECK(form("quantised/modelopt-fp8-channel") == "fp8, a scale for each row");
  CHECK(form("quantised/modelopt-fp8-blocks") == "fp8, a scale for each 128 x 128; fp8, one scale");
  CHECK(form("quantised/modelopt-mxfp8") == "fp8, a scale for each 32 columns of a row");
  CHECK(form("quantised/modelopt-mxfp4") == "mxfp4, a scale for each 32 columns of a row");
  CHECK(form("quantised/autoround-gptq") == "gptq, a scale for each 32 columns of a row");
  CHECK(form("quantised/autoround-awq") == "awq, a scale for each 32 columns of a row");
}

TEST_CASE("quantised: logits and greedy text are transformers'") {
  const auto backend = make_cpu_backend(2);
  for (const std::string& name : cases()) {
    CAPTURE(name);
    const auto [folder, golden, all_ids] = test::golden(name.c_str());
    const Checkpoint checkpoint = Checkpoint::open(folder);
    const ModelConfig config = read_model_config(checkpoint);
    const auto logits = test::run_model(checkpoint, config, *backend, all_ids);
    const Json expected = golden.at("logits");
    double worst = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto position = static_cast<size_t>(std::stoul(expected.key(i)));
      const std::vector<double> row = test::numbers_of(expected.value(i));
      for (size_t j = 0; j < row.size(); ++j) {
        worst = std::max(worst, std::abs(double{logits[position][j]} - row[j]));
      }
    }
    CHECK(worst < 1e-4);
    std::vector<int32_t> greedy;
    for (const double id : test::numbers_of(golden.at("greedy"))) {
      greedy.push_back(static_cast<int32_t>(id));
    }
    const std::vector<int32_t> prompt(all_ids.begin(), all_ids.begin() + 16);
    CHECK(test::run_greedy({checkpoint, config, *backend}, prompt,
                           static_cast<int>(greedy.size())) == greedy);
  }
}

TEST_CASE("quantised: weights that products read in place give the bits of decoded ones") {
  const auto cpu = make_cpu_backend(2);
  test::LogitTap decoding(*cpu);  // takes nothing in place
  std::string in_place;
  for (const std::string& name : cases()) {
    CAPTURE(name);
    const auto [folder, golden, ids] = test::golden(name.c_str());
    const Checkpoint checkpoint = Checkpoint::open(folder);
    ModelConfig config = read_model_config(checkpoint);
    config.dtype = DType::bf16;  // decodes to bf16: f32 products read nothing in place
    const LayerWeights layer = WeightLoader(checkpoint, config, *cpu).layer(0);
    const bool has_codes =
        layer.attn.q.codes || layer.o.codes || (layer.experts && !layer.experts->codes.empty());
    if (has_codes) in_place += name.substr(name.find('/') + 1) + " ";
    CHECK(test::run_model(checkpoint, config, *cpu, ids) ==
          test::run_model(checkpoint, config, decoding, ids));
    // Few rows at a time, as when text is generated.
    CHECK(test::run_model(checkpoint, config, *cpu, ids, {.chunk = 2}) ==
          test::run_model(checkpoint, config, decoding, ids, {.chunk = 2}));
  }
  CHECK(in_place ==
        "autoawq autoround-awq autoround-gptq fp8-block-ct fp8-channel fp8-tensor gpt-oss "
        "gpt-oss-one-expert gpt-oss-three-experts gptq-v2 gptqmodel-zero granite-moe-fp8 "
        "int8-channel int8-zero llama4-fp8-fbgemm llama4-fp8-modelopt llmcompressor-fp8-block "
        "llmcompressor-w4a16 llmcompressor-w8a8 modelopt-fp8 modelopt-fp8-blocks "
        "modelopt-fp8-channel modelopt-mxfp4 mxfp4 mxfp8 packed-int8 quark-fp8 quark-fp8-rows "
        "quark-int8 quark-mxfp4 ");
}

TEST_CASE("quantised: MXFP4 with DeepSeek V4's names gives the bits of other names") {
  const test::Golden golden = test::golden("quantised/mxfp4");
  const test::TempDir dir;
  std::filesystem::copy(golden.folder, dir / "m");
  std::filesystem::permissions(dir / "m" / "model.safetensors", std::filesystem::perms::owner_all);
  std::string file = test::read_file(golden.folder / "model.safetensors");
  constexpr size_t kLengthBytes = 8;
  uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  std::string header = file.substr(kLengthBytes, length);
  replace_all(header, R"(.weight_packed":{"dtype":"U8")", R"(.weight":{"dtype":"I8")");
  replace_all(header, R"(.weight_scale":{"dtype":"U8")", R"(.scale":{"dtype":"F8_E8M0")");
  CHECK(header.size() < length);
  header.resize(length, ' ');
  file.replace(kLengthBytes, length, header);
  std::ofstream(dir / "m" / "model.safetensors", std::ios::binary) << file;

  const Checkpoint checkpoint = Checkpoint::open(golden.folder);
  const Checkpoint renamed = Checkpoint::open(dir / "m");
  CHECK(renamed.find("model.layers.0.mlp.up_proj.scale") != nullptr);
  const ModelConfig config = read_model_config(renamed);
  CHECK(config.stored_as == read_model_config(checkpoint).stored_as);
  const auto backend = make_cpu_backend(2);
  CHECK(test::run_model(renamed, config, *backend, golden.ids) ==
        test::run_model(checkpoint, read_model_config(checkpoint), *backend, golden.ids));
}

TEST_CASE("quantised: amax of K and V, head by head, is that of transformers' cache") {
  const auto backend = make_cpu_backend(2);
  for (const std::string& name : cases()) {
    CAPTURE(name);
    const auto [folder, golden, ids] = test::golden(name.c_str());
    const Checkpoint checkpoint = Checkpoint::open(folder);
    Log log(Verbosity::quiet);
    const auto layers =
        collect_magnitudes({checkpoint, read_model_config(checkpoint), *backend}, {ids}, log);
    const Json k = golden.at("k_amax"), v = golden.at("v_amax");
    REQUIRE(layers.size() == k.size());
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      check_amax(layers[layer].k, k[layer]);
      check_amax(layers[layer].v, v[layer]);
    }
  }
}

TEST_CASE("quantised: a runner counts weights as they lie in memory, not as files have them") {
  const auto backend = make_cpu_backend(2);
  const auto folder = test::golden("quantised/nvfp4-modelopt").folder;
  const Checkpoint checkpoint = Checkpoint::open(folder);
  const ModelConfig config = read_model_config(checkpoint);
  const Runner runner(checkpoint, config, *backend,
                      {.max_rows = 8, .max_sequences = 1, .max_tokens = 16});
  // f32 products read nothing in place. The embedding is also the output matrix.
  int64_t elements = -config.vocab_size * config.dim;
  for (const ModelTensor& tensor : outer_tensors(config)) elements += tensor.shape.elements();
  for (int64_t i = 0; i < config.n_layers(); ++i) {
    for (const ModelTensor& tensor : layer_tensors(config, i)) elements += tensor.shape.elements();
  }
  CHECK(runner.weight_bytes() == static_cast<uint64_t>(4 * elements));
}

namespace {

// The most bytes allocated at a time while `checkpoint` is calibrated.
uint64_t calibration_peak(const Checkpoint& checkpoint) {
  test::CountingBackend backend(make_cpu_backend(1));
  Log log(Verbosity::quiet);
  collect_magnitudes({checkpoint, read_model_config(checkpoint), backend},
                     test::StreamedModel::windows(), log);
  return backend.peak();
}

Checkpoint quantised(const test::StreamedModel& model, const std::filesystem::path& out) {
  Log log(Verbosity::quiet);
  const QuantizeFolderOptions options{
      .scheme = &fp8_scheme_at("fp8-dynamic"), .threads = 1, .version = "test"};
  quantize_folder(model.checkpoint, check_quantisable(model.checkpoint, model.config, out, options),
                  out, options, log);
  return Checkpoint::open(out);
}

}  // namespace

TEST_CASE("quantised: a calibration on the CPU holds one layer decoded, of however many") {
  for (const int64_t n_layers : {3, 8}) {
    CAPTURE(n_layers);
    const test::StreamedModel plain(DType::bf16, n_layers);
    const Checkpoint fp8 = quantised(plain, plain.folder / "fp8");
    uint64_t layer_bytes = 0;  // decoded matrices
    for (const ModelTensor& tensor : layer_tensors(plain.config, 0)) {
      if (tensor.shape.rank() == 2) {
        layer_bytes += static_cast<uint64_t>(tensor.shape.elements()) * dtype_bytes(DType::bf16);
      }
    }
    CHECK(calibration_peak(fp8) == calibration_peak(plain.checkpoint) + layer_bytes);
  }
}

// Scaling rows to length 1 cancels their scales. So the plain model must have the codes' values,
// whatever the scales are.
TEST_CASE("quantised: an lm_head whose rows are brought to length 1") {
  constexpr const char* kOfHead =
      R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": )"
      R"(["re:lm_head"], "weights": {"num_bits": 8, "type": "float"}}}})";
  const test::FamilyModel model("baichuan2-7b");
  const TensorEntry& head = model.checkpoint.at("lm_head.weight");
  const int64_t rows = head.shape[0];
  std::string codes;
  std::vector<float> values, scales;
  const MappedTensor old = model.checkpoint.map(head.name);
  for (int64_t i = 0; i < head.shape.elements(); ++i) {
    const uint8_t code = fp8_encode<Fp8Format::e4m3fn>(old.view.as<float>()[i]);
    codes += static_cast<char>(code);
    values.push_back(fp8_decode<Fp8Format::e4m3fn>(code));
  }
  for (int64_t row = 0; row < rows; ++row) scales.push_back(0.25f * static_cast<float>(row + 1));
  const auto bytes_of = [](const auto& list) {
    return reinterpret_cast<const std::byte*>(list.data());
  };
  const auto written = [&](const char* name, std::vector<TensorToWrite> tensors) {
    std::vector<MappedTensor> kept;
    for (const auto& [key, place] : model.checkpoint.tensors()) {
      if (key == head.name) continue;
      kept.push_back(model.checkpoint.map(key));
      tensors.push_back({key, kept.back().view});
    }
    JsonWriter config;
    config.value(model.golden.at("config"));
    const bool is_fp8 = std::string(name) == "fp8";
    model.folder.write(
        cat(name, "/config.json"),
        is_fp8 ? json_with_member(config.text(), "quantization_config", kOfHead) : config.text());
    model.folder.write(cat(name, "/model.safetensors"), safetensors_bytes(tensors, {}));
    return Checkpoint::open(model.folder / name);
  };
  const Checkpoint plain =
      written("plain", {{head.name, ConstTensorView(bytes_of(values), DType::f32, head.shape)}});
  const Checkpoint fp8 = written(
      "fp8",
      {{head.name, ConstTensorView(bytes_of(codes), DType::f8_e4m3, head.shape)},
       {"lm_head.weight_scale", ConstTensorView(bytes_of(scales), DType::f32, Shape{rows, 1})}});
  const auto backend = make_cpu_backend(2);
  const auto logits = [&](const Checkpoint& checkpoint) {
    return test::run_model(checkpoint, read_model_config(checkpoint), *backend, model.ids);
  };
  CHECK(test::logit_difference(logits(fp8), logits(plain)) < test::kLogitTolerance);
}

}  // namespace fp8kv
