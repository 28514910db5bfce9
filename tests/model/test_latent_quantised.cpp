// A DeepSeek model in FP8 by blocks of 128 x 128, the published form, against its decoded weights.
#include <cmath>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "base/log.h"
#include "base/rng.h"
#include "calib/collect.h"
#include "checkpoint/model/read_model_config.h"
#include "config/families/tensor_table.h"
#include "config/parse_model_config.h"
#include "core/numbers/fp8.h"
#include "formats/safetensors.h"
#include "json/json.h"
#include "model/weights/weight_loader.h"
#include "support/backends/cpu.h"
#include "support/backends/logit_tap.h"
#include "support/models/random_model.h"
#include "support/models/run_model.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

// No size is a whole number of blocks, and neither is a head's part of kv_b_proj (90 of 270 rows).
constexpr const char* kConfig = R"({
  "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "torch_dtype": "float32",
  "vocab_size": 77, "hidden_size": 160, "intermediate_size": 140, "num_hidden_layers": 2,
  "num_attention_heads": 3, "num_key_value_heads": 3, "max_position_embeddings": 64,
  "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": false,
  "q_lora_rank": 136, "kv_lora_rank": 130, "qk_nope_head_dim": 40, "qk_rope_head_dim": 6,
  "v_head_dim": 50, "first_k_dense_replace": 1, "moe_intermediate_size": 132,
  "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "n_group": 1,
  "topk_group": 1, "norm_topk_prob": true, "routed_scaling_factor": 2.5,
  "scoring_func": "sigmoid", "topk_method": "noaux_tc"})";
constexpr const char* kQuantised = R"({
  "quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
  "weight_block_size": [128, 128]})";
constexpr int64_t kBlock = 128;

// A folder's tensors, with the bytes that they own.
struct Tensors {
  std::vector<std::string> names;
  std::vector<DType> dtypes;
  std::vector<Shape> shapes;
  std::vector<std::string> bytes;

  template <typename T>
  void add(const std::string& name, DType dtype, const Shape& shape, const std::vector<T>& values) {
    names.push_back(name);
    dtypes.push_back(dtype);
    shapes.push_back(shape);
    bytes.emplace_back(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }

  void write(const std::filesystem::path& folder, const std::string& config) const {
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "config.json") << config;
    std::vector<TensorToWrite> items;
    for (size_t i = 0; i < names.size(); ++i) {
      const auto* data = reinterpret_cast<const std::byte*>(bytes[i].data());
      items.push_back({names[i], ConstTensorView(data, dtypes[i], shapes[i])});
    }
    std::ofstream(folder / "model.safetensors", std::ios::binary)
        << safetensors_bytes(items, {{"format", "pt"}});
  }
};

// Adds a matrix of random codes and scales, and its decoded numbers.
void add_matrix(Rng& rng, const std::string& name, const Shape& shape, Tensors& coded,
                Tensors& decoded) {
  const int64_t rows = shape[0], columns = shape[1];
  const int64_t groups = (columns + kBlock - 1) / kBlock;
  const Shape scale_shape{(rows + kBlock - 1) / kBlock, groups};
  const float usual = 2.6f / std::sqrt(static_cast<float>(columns)) / 448;
  std::vector<float> scales = test::random_floats(rng, scale_shape.elements());
  for (float& scale : scales) scale = usual * (1 + scale / 2);
  const std::vector<float> drawn = test::random_floats(rng, shape.elements());
  std::vector<uint8_t> codes;
  std::vector<float> worth;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const int64_t block = i / columns / kBlock * groups + i % columns / kBlock;
    codes.push_back(fp8_encode<Fp8Format::e4m3fn>(drawn[static_cast<size_t>(i)] * 448));
    worth.push_back(fp8_decode<Fp8Format::e4m3fn>(codes.back()) *
                    scales[static_cast<size_t>(block)]);
  }
  coded.add(name, DType::f8_e4m3, shape, codes);
  coded.add(name + "_scale_inv", DType::f32, scale_shape, scales);
  decoded.add(name, DType::f32, shape, worth);
}

struct Models {
  test::TempDir folder;
  std::set<std::string> quantised;  // modules
  std::vector<int32_t> ids;

  Models() {
    const ModelConfig config = parse_model_config(Json::parse(kConfig, "config.json"));
    for (const std::string& module : linear_modules(config)) {
      // In published models, lm_head and routers are not quantised.
      if (module != "lm_head" && !module.ends_with("mlp.gate")) quantised.insert(module);
    }
    Rng rng(9);
    Tensors coded, decoded;
    for (const ModelTensor& tensor : test::tensors_of(config)) {
      const std::string module = tensor.name.substr(0, tensor.name.rfind('.'));
      if (quantised.contains(module)) {
        add_matrix(rng, tensor.name, tensor.shape, coded, decoded);
        continue;
      }
      std::vector<float> values = test::random_floats(rng, tensor.shape.elements());
      for (float& value : values) value = tensor.shape.rank() == 1 ? 1 + value / 3 : value;
      for (Tensors* each : {&coded, &decoded}) {
        each->add(tensor.name, DType::f32, tensor.shape, values);
      }
    }
    decoded.write(folder / "decoded", kConfig);
    coded.write(folder / "coded", json_with_member(kConfig, "quantization_config", kQuantised));
    for (int i = 0; i < 40; ++i) ids.push_back(3 + i * 31 % 74);
  }
};

}  // namespace

TEST_CASE("latent, quantised: FP8 blocks of 128 x 128 give what their decoded weights give") {
  const Models models;
  CHECK(models.quantised.contains("model.layers.1.self_attn.kv_b_proj"));
  CHECK(models.quantised.contains("model.layers.1.mlp.experts.3.down_proj"));
  const auto backend = make_cpu_backend(2);
  const Checkpoint coded = Checkpoint::open(models.folder / "coded");
  const Checkpoint decoded = Checkpoint::open(models.folder / "decoded");
  const ModelConfig config = read_model_config(coded), plain = read_model_config(decoded);
  CHECK(config.stored_as.find("a scale for each 128 x 128") != std::string::npos);

  CHECK(test::run_model(coded, config, *backend, models.ids) ==
        test::run_model(decoded, plain, *backend, models.ids));
  const std::vector<int32_t> prompt(models.ids.begin(), models.ids.begin() + 16);
  CHECK(test::run_greedy({coded, config, *backend}, prompt, 24) ==
        test::run_greedy({decoded, plain, *backend}, prompt, 24));
  Log log(Verbosity::quiet);
  const auto found = collect_magnitudes({coded, config, *backend}, {models.ids}, log);
  const auto expected = collect_magnitudes({decoded, plain, *backend}, {models.ids}, log);
  for (size_t layer = 0; layer < expected.size(); ++layer) {
    CHECK(found[layer].k[0].amax == expected[layer].k[0].amax);
    CHECK(found[layer].v[0].amax == expected[layer].v[0].amax);
    CHECK(found[layer].k[0].amax > 0.1f);
  }
}

TEST_CASE("latent, quantised: matrices that are read in place give the bits of decoded ones") {
  const Models models;
  const auto cpu = make_cpu_backend(2);
  test::LogitTap decoding(*cpu);  // takes nothing in place
  const Checkpoint checkpoint = Checkpoint::open(models.folder / "coded");
  ModelConfig config = read_model_config(checkpoint);
  config.dtype = DType::bf16;  // products of f32 take nothing in place
  const LayerWeights layer = WeightLoader(checkpoint, config, *cpu).layer(1);
  CHECK(layer.o.codes.has_value());
  CHECK(layer.attn.q.codes.has_value());
  for (const int64_t chunk : {40, 2}) {
    CHECK(test::run_model(checkpoint, config, *cpu, models.ids, {.chunk = chunk}) ==
          test::run_model(checkpoint, config, decoding, models.ids, {.chunk = chunk}));
  }
}

}  // namespace fp8kv
