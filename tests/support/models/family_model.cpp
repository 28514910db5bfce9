#include "support/models/family_model.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include <doctest/doctest.h>

#include "checkpoint/model/read_model_config.h"
#include "support/models/tiny_checkpoint.h"
#include "support/models/tiny_config.h"
#include "support/places.h"
#include "support/sanitizers.h"

namespace fp8kv::test {
namespace {

namespace fs = std::filesystem;

fs::path families_folder() {
  return source_dir() / "tests/golden/families";
}

// Weights by the formula of `values` in make_families.py.
std::vector<float> values_of(const std::string& name, uint64_t seed, const Shape& shape,
                             double base, double amplitude) {
  uint64_t start = 0xCBF29CE484222325u ^ seed;
  for (const char byte : name) start = (start ^ static_cast<unsigned char>(byte)) * 0x100000001B3u;
  std::vector<float> values;
  for (uint64_t i = 1; i <= static_cast<uint64_t>(shape.elements()); ++i) {
    uint64_t z = start + i * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    const double u = (static_cast<double>(z >> 40) + 0.5) / 0x1p23 - 1;
    values.push_back(static_cast<float>(base + amplitude * u));
  }
  return values;
}

// The experts of each token, like `table` in make_families.py.
std::vector<float> table_of(const Shape& shape, int64_t choices) {
  std::vector<float> table;
  for (int64_t token = 0; token < shape[0]; ++token) {
    for (int64_t i = 0; i < shape[1]; ++i) {
      table.push_back(static_cast<float>((3 * token + token / 5 + i) % choices));
    }
  }
  return table;
}

std::vector<TinyTensor> tensors_of(const Json& golden) {
  const auto seed = static_cast<uint64_t>(golden.at("seed").as_int());
  const Json described = golden.at("tensors");
  std::vector<TinyTensor> tensors;
  for (size_t i = 0; i < described.size(); ++i) {
    const Json tensor = described.value(i), sizes = tensor.at("shape");
    std::vector<int64_t> shape;
    for (size_t j = 0; j < sizes.size(); ++j) shape.push_back(sizes[j].as_int());
    const Shape of{std::span<const int64_t>(shape)};
    if (const auto choices = tensor.find("choices")) {
      tensors.push_back({described.key(i), of, table_of(of, choices->as_int()), DType::i64});
      continue;
    }
    tensors.push_back({described.key(i), of,
                       values_of(described.key(i), seed, of, tensor.at("base").as_double(),
                                 tensor.at("amplitude").as_double())});
  }
  return tensors;
}

Checkpoint written(const fs::path& folder, const Json& golden, const std::string& key,
                   const std::string& value) {
  fs::create_directories(folder);
  JsonWriter config;
  config.value(golden.at("config"));
  std::ofstream(folder / "config.json")
      << (key.empty() ? config.text() : json_with_member(config.text(), key, value));
  write_tiny_weights(folder, tensors_of(golden), DType::f32);
  return Checkpoint::open(folder);
}

std::vector<int32_t> ids_of(const Json& array) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < array.size(); ++i) ids.push_back(static_cast<int32_t>(array[i].as_int()));
  return ids;
}

}  // namespace

std::vector<std::string> family_cases(std::optional<size_t> turn) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(families_folder())) {
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  const size_t step = (kThreadSanitizer ? 3 : 1) * (kSanitized && turn ? 3 : 1);
  std::vector<std::string> some;
  for (size_t i = turn.value_or(0) % step; i < names.size(); i += step) some.push_back(names[i]);
  return some;
}

Checkpoint write_golden_model(const fs::path& folder, const Json& golden) {
  return written(folder, golden, "", "");
}

Checkpoint write_narrow_model(const fs::path& folder, const Json& golden,
                              const std::vector<std::string>& wide) {
  fs::create_directories(folder);
  JsonWriter config;
  config.value(golden.at("config"));
  std::ofstream(folder / "config.json") << config.text();
  std::vector<TinyTensor> tensors = tensors_of(golden);
  for (TinyTensor& tensor : tensors) {
    const auto has = [&](const std::string& part) {
      return tensor.name.find(part) != std::string::npos;
    };
    if (!tensor.dtype && std::any_of(wide.begin(), wide.end(), has)) tensor.dtype = DType::f32;
  }
  write_tiny_weights(folder, tensors, DType::bf16);
  return Checkpoint::open(folder);
}

// Reads a golden once, because some tests use all of them many times.
Json family_golden(const std::string& name) {
  static std::map<std::string, Json> read;
  const auto found = read.find(name);
  if (found != read.end()) return found->second;
  Json golden = Json::read(families_folder() / (name + ".json"), JsonNumbers::python);
  return read.emplace(name, std::move(golden)).first->second;
}

FamilyModel::FamilyModel(const std::string& name) : FamilyModel(name, "", "") {}

FamilyModel::FamilyModel(const std::string& name, const std::string& key, const std::string& value)
    : golden(family_golden(name)),
      checkpoint(written(folder / "model", golden, key, value)),
      config(read_model_config(checkpoint)),
      ids(ids_of(golden.at("ids"))),
      greedy(ids_of(golden.at("greedy"))) {}

std::vector<double> numbers_of(const Json& array) {
  std::vector<double> numbers;
  for (size_t i = 0; i < array.size(); ++i) numbers.push_back(array[i].as_double());
  return numbers;
}

namespace {}  // namespace

void check_heads(const std::vector<MagnitudeCounts>& heads, const Json& expected) {
  const std::vector<double> amax = numbers_of(expected);
  REQUIRE(heads.size() == amax.size());
  for (size_t head = 0; head < heads.size(); ++head) {
    CHECK(std::abs(heads[head].amax - amax[head]) <= kAmaxTolerance * amax[head]);
  }
}

void check_amax(const FamilyModel& model, const std::vector<LayerMagnitudes>& layers) {
  const Json k = model.golden.at("k_amax"), v = model.golden.at("v_amax");
  REQUIRE(static_cast<int64_t>(layers.size()) == model.config.n_layers());
  REQUIRE(static_cast<int64_t>(k.size()) == model.config.cache_layers());
  size_t caches = 0;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    if (!model.config.writes_cache(static_cast<int64_t>(layer))) continue;
    CAPTURE(layer);
    check_heads(layers[layer].k, k[caches]);
    check_heads(layers[layer].v, v[caches]);
    ++caches;
  }
}

namespace {

// The largest difference of two rows [vocab_size], relative to the largest expected logit.
template <class A, class B>
double row_difference(const std::vector<A>& row, const std::vector<B>& expected) {
  REQUIRE(row.size() == expected.size());
  double difference = 0, largest = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    difference = std::max(difference, std::abs(double{row[i]} - double{expected[i]}));
    largest = std::max(largest, std::abs(double{expected[i]}));
  }
  return difference / largest;
}

}  // namespace

double logit_difference(const FamilyModel& model, const std::vector<std::vector<float>>& logits) {
  const Json expected = model.golden.at("logits");
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto position = static_cast<size_t>(std::stoul(expected.key(i)));
    worst = std::max(worst, row_difference(logits[position], numbers_of(expected.value(i))));
  }
  return worst;
}

double logit_difference(const std::vector<std::vector<float>>& a,
                        const std::vector<std::vector<float>>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, row_difference(a[i], b[i]));
  return worst;
}

void check_logits(const FamilyModel& model, const std::vector<std::vector<float>>& logits) {
  CHECK(logit_difference(model, logits) < kLogitTolerance);
}

std::string family_with(const std::string& name, const std::string& key, const std::string& value) {
  JsonWriter text;
  text.value(family_golden(name).at("config"));
  return json_with_member(text.text(), key, value);
}

std::string refusal_of_family(const std::string& name, const std::string& key,
                              const std::string& value) {
  return error_of_config(family_with(name, key, value));
}

std::string without_rope(const std::string& name) {
  return json_with_member(family_with(name, "rope_theta", "null"), "rope_scaling", "null");
}

}  // namespace fp8kv::test
