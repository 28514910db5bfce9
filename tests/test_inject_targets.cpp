#include <algorithm>
#include <filesystem>

#include <doctest/doctest.h>

#include "base/json.h"
#include "base/rng.h"
#include "core/half.h"
#include "io/architectures.h"
#include "io/dialects.h"
#include "io/inject.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"
#include "support/tiny_checkpoint.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

KvScales random_scales(const ModelConfig& config, uint64_t seed, bool per_head) {
  Rng rng(seed);
  const auto any = [&] {  // any positive normal float
    const uint64_t bits = rng.next();
    return float_from_bits(static_cast<uint32_t>((1 + bits % 254) << 23 | (bits >> 41)));
  };
  KvScales scales;
  scales.model_type = config.model_type;
  scales.n_kv_heads = config.n_kv_heads;
  scales.layers.resize(static_cast<size_t>(config.n_layers));
  for (LayerScales& layer : scales.layers) {
    for (int64_t head = 0; head < (per_head ? config.n_kv_heads : 1); ++head) {
      layer.k.push_back(any());
      layer.v.push_back(any());
    }
  }
  return scales;
}

KvScales fused(const KvScales& scales) {
  KvScales out = per_tensor(scales);
  for (LayerScales& layer : out.layers) {
    layer.k[0] = layer.v[0] = std::max(layer.k[0], layer.v[0]);
  }
  return out;
}

struct Place {
  test::TempDir folder;
  ModelConfig config;

  Place() : config(test::tiny_config()) {}
  void make_model() { test::write_tiny_checkpoint(folder / "model", config); }
  FoundScales through(const KvScales& scales, const std::string& target) {
    InjectOptions options;
    options.target = target;
    options.overwrite = true;
    inject_scales(Checkpoint::open(folder / "model"), scales, folder / "out", options);
    return scales_at(Checkpoint::open(folder / "out"));
  }
};

}  // namespace

TEST_CASE("inject targets: what each form can carry comes back bit for bit, for any scales") {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Place place;
    place.config.n_layers = 1 + static_cast<int64_t>(seed);
    place.config.n_kv_heads = seed % 2 == 0 ? 4 : 2;
    place.make_model();
    const KvScales tensor = random_scales(place.config, seed, false);
    const KvScales head = random_scales(place.config, seed + 100, true);
    for (const InjectTarget& target : inject_targets()) {
      if (target.is_file) continue;
      CAPTURE(target.name);
      const KvScales& one = tensor;
      CHECK(place.through(one, target.name).scales.layers ==
            (target.apart ? one.layers : fused(one).layers));
      const auto expected = target.per_head ? head.layers
                            : target.apart  ? per_tensor(head).layers
                                            : fused(head).layers;
      CHECK(place.through(head, target.name).scales.layers == expected);
    }
  }
}

TEST_CASE("inject targets: scales go through every pair of forms that has room for them") {
  Place place;
  place.make_model();
  const KvScales scales = random_scales(place.config, 9, false);
  for (const InjectTarget& first : inject_targets()) {
    for (const InjectTarget& second : inject_targets()) {
      if (first.is_file || second.is_file || !first.apart || !second.apart) continue;
      CAPTURE(first.name);
      CAPTURE(second.name);
      const KvScales once = place.through(scales, first.name).scales;
      CHECK(place.through(once, second.name).scales.layers == scales.layers);
    }
  }
}

TEST_CASE("inject targets: every model folder says kv_cache_torch_dtype and can still be run") {
  Place place;
  place.make_model();
  const KvScales scales = random_scales(place.config, 3, false);
  for (const InjectTarget& target : inject_targets()) {
    if (target.is_file) continue;
    CAPTURE(target.name);
    place.through(scales, target.name);
    const Checkpoint out = Checkpoint::open(place.folder / "out");
    CHECK(out.config().at("kv_cache_torch_dtype").as_string() == "float8_e4m3fn");
    CHECK(out.config().has("quantization_config") == (target.block != InjectTarget::Block::none));
    if (target.block != InjectTarget::Block::fp8) {
      CHECK(read_model_config(out).n_layers == place.config.n_layers);
    }
  }
}

TEST_CASE("inject targets: vllm gets the KV-only compressed-tensors block, frozen") {
  Place place;
  place.make_model();
  place.through(random_scales(place.config, 3, false), "vllm");
  const Json block = Checkpoint::open(place.folder / "out").config().at("quantization_config");
  CHECK(block.at("quant_method").as_string() == "compressed-tensors");
  CHECK(block.at("quantization_status").as_string() == "frozen");
  CHECK(block.at("config_groups").size() == 0);
  CHECK(block.at("ignore").size() > 0);
  const Json scheme = block.at("kv_cache_scheme");
  CHECK(scheme.at("num_bits").as_int() == 8);
  CHECK(scheme.at("type").as_string() == "float");
  CHECK(scheme.at("strategy").as_string() == "tensor");
  CHECK_FALSE(scheme.at("dynamic").as_bool());
  CHECK(scheme.at("symmetric").as_bool());
}

TEST_CASE("inject targets: kv_scale is never written beside k_scale where both would mean K") {
  Place place;
  place.make_model();
  for (const InjectTarget& target : inject_targets()) {
    if (target.is_file || target.block == InjectTarget::Block::none) continue;
    CAPTURE(target.name);
    CHECK_FALSE((target.fused && target.apart));
  }
}

TEST_CASE("inject targets: scales that are there are refused, and replaced when asked") {
  Place place;
  place.make_model();
  const KvScales first = random_scales(place.config, 1, false);
  const KvScales second = random_scales(place.config, 2, false);
  place.through(first, "tgi");
  InjectOptions options;
  options.target = "tgi";
  const Checkpoint carrying = Checkpoint::open(place.folder / "out");
  const std::string refused =
      test::error_of([&] { inject_scales(carrying, second, place.folder / "again", options); });
  CHECK(refused.find("carries") != refused.npos);
  CHECK_FALSE(fs::exists(place.folder / "again"));
  options.replace = true;
  inject_scales(carrying, second, place.folder / "again", options);
  CHECK(scales_at(Checkpoint::open(place.folder / "again")).scales.layers == second.layers);
  CHECK(scales_at(Checkpoint::open(place.folder / "out")).scales.layers == first.layers);
}

}  // namespace fp8kv
