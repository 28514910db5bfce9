// Files with experts in another form than most of their family: each in tensors of its own, or all
// of a layer in one. The weights are the same, and so are all results.
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/identity/model_identity.h"
#include "checkpoint/model/read_model_config.h"
#include "config/families/tensor_table.h"
#include "core/numbers/fp8.h"
#include "formats/safetensors.h"
#include "model/weights/weight_loader.h"
#include "support/models/family_model.h"
#include "support/models/goldens.h"
#include "support/models/run_model.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

// Collects a model's tensors for another folder.
class Rewritten {
 public:
  explicit Rewritten(const Checkpoint& from) : from_(from) {}

  void keep(const std::string& name) {
    kept_.push_back(from_.map(name));
    tensors_.push_back({name, kept_.back().view});
  }
  template <typename T>
  void add(const std::string& name, DType dtype, const Shape& shape, const std::vector<T>& values) {
    const auto* bytes = reinterpret_cast<const char*>(values.data());
    made_.emplace_back(bytes, values.size() * sizeof(T));
    tensors_.push_back(
        {name,
         ConstTensorView(reinterpret_cast<const std::byte*>(made_.back().data()), dtype, shape)});
  }
  Checkpoint write(const Json& config) {
    JsonWriter text;
    text.value(config);
    folder_.write("config.json", text.text());
    folder_.write("model.safetensors", safetensors_bytes(tensors_, {}));
    return Checkpoint::open(folder_.path());
  }

 private:
  const Checkpoint& from_;
  test::TempDir folder_;
  std::list<MappedTensor> kept_;
  std::list<std::string> made_;
  std::vector<TensorToWrite> tensors_;
};

// The place of element [row][column] of one role, in the family's layout of a tensor of all
// experts.
struct Place {
  int64_t row, column, roles, turn,
      rows;  // in the matrix; `turn` of `roles` roles, `rows` rows each
};
using IndexOf = int64_t (*)(const Place& at, const Shape& shape);

int64_t in_turn(const Place& at, const Shape& shape) {  // gpt-oss
  return at.column * shape[2] + at.row * at.roles + at.turn;
}
int64_t one_after_another(const Place& at, const Shape& shape) {  // Llama 4
  return at.column * shape[2] + at.turn * at.rows + at.row;
}

// Splits the tensors of all experts: "..experts.gate_up_proj" becomes
// "..experts.3.gate_proj.weight" and so on.
Checkpoint taken_apart(const test::FamilyModel& model, Rewritten& out, IndexOf index_of) {
  for (const auto& [name, location] : model.checkpoint.tensors()) {
    const size_t at = name.find(".experts.");
    if (at == name.npos) {
      out.keep(name);
      continue;
    }
    const std::string before = name.substr(0, at + 9);
    const bool fused = name.find("gate_up") != name.npos, is_bias = name.ends_with("_bias");
    const MappedTensor whole = model.checkpoint.map(name);
    const Shape& shape = whole.view.shape;
    const int64_t roles = fused ? 2 : 1, rows = shape[shape.rank() - 1] / roles;
    const int64_t columns = is_bias ? 1 : shape[1];
    for (int64_t expert = 0; expert < shape[0]; ++expert) {
      const float* from = whole.view.as<float>() + expert * rows * roles * columns;
      for (int64_t turn = 0; turn < roles; ++turn) {
        std::vector<float> values;
        for (int64_t i = 0; i < rows * columns; ++i) {
          const Place place{i / columns, i % columns, roles, turn, rows};
          values.push_back(from[index_of(place, Shape{1, columns, rows * roles})]);
        }
        const char* role = !fused ? "down" : turn == 0 ? "gate" : "up";
        out.add(cat(before, expert, ".", role, "_proj.", is_bias ? "bias" : "weight"), DType::f32,
                is_bias ? Shape{rows} : Shape{rows, columns}, values);
      }
    }
  }
  return out.write(model.golden.at("config"));
}

// Splits the rows of all experts in one tensor, of weights or of codes and their scales: those of
// "..experts.gate_up_proj", of "..block_sparse_moe.input_linear.weight" and so on.
Checkpoint rows_taken_apart(const Checkpoint& from, const Json& config, Rewritten& out) {
  size_t taken = 0;
  for (const auto& [name, location] : from.tensors()) {
    constexpr std::string_view kGranite = "block_sparse_moe.", kExperts = "experts.";
    const size_t granite = name.find(kGranite), experts = name.find(kExperts);
    if (location.entry.shape.rank() != 3 || (granite == name.npos && experts == name.npos)) {
      out.keep(name);
      continue;
    }
    const std::string before = granite != name.npos
                                   ? cat(name.substr(0, granite + kGranite.size()), kExperts)
                                   : name.substr(0, experts + kExperts.size());
    const bool down = name.find("output_linear") != name.npos || name.find("down_") != name.npos;
    const char* end = name.ends_with("_scale")       ? "weight_scale"
                      : name.ends_with("_scale_inv") ? "weight_scale_inv"
                                                     : "weight";
    const MappedTensor whole = from.map(name);
    const Shape& shape = whole.view.shape;
    const int64_t roles = down ? 1 : 2;
    const size_t bytes = whole.view.bytes() / static_cast<size_t>(shape[0] * roles);
    const auto* at = reinterpret_cast<const uint8_t*>(whole.view.data);
    for (int64_t i = 0; i < shape[0] * roles; ++i, at += bytes, ++taken) {
      const char* role = down ? "down" : i % roles == 0 ? "gate" : "up";
      out.add(cat(before, i / roles, ".", role, "_proj.", end), whole.view.dtype,
              {shape[1] / roles, shape[2]}, std::vector<uint8_t>(at, at + bytes));
    }
  }
  CHECK(taken > 10);
  return out.write(config);
}

std::vector<std::vector<float>> logits_of(const Checkpoint& checkpoint,
                                          const std::vector<int32_t>& ids) {
  const auto backend = make_cpu_backend(2);
  return test::run_model(checkpoint, read_model_config(checkpoint), *backend, ids);
}

}  // namespace

TEST_CASE("expert forms: experts that are taken apart, with biases and without") {
  const std::pair<const char*, IndexOf> kCases[] = {
      {"gpt-oss", in_turn}, {"gpt-oss-layer-types", in_turn}, {"llama4", one_after_another}};
  for (const auto& [name, index_of] : kCases) {
    CAPTURE(std::string(name));
    const test::FamilyModel model(name);
    Rewritten out(model.checkpoint);
    const Checkpoint apart = taken_apart(model, out, index_of);
    CHECK(logits_of(apart, model.ids) == logits_of(model.checkpoint, model.ids));
  }
}

TEST_CASE("expert forms: experts in one tensor, gate before up, or up alone") {
  for (const char* name : {"glm4-moe", "qwen3-next-dense-layers", "qwen3.5-moe", "nemotron-h"}) {
    CAPTURE(std::string(name));
    const test::FamilyModel model(name);
    const ModelConfig& config = model.config;
    const int64_t count = config.experts->count, rows = config.experts->hidden_dim;
    Rewritten out(model.checkpoint);
    for (const auto& [tensor, location] : model.checkpoint.tensors()) {
      if (tensor.find(".experts.") == tensor.npos) out.keep(tensor);
    }
    for (int64_t layer = 0; layer < config.n_layers(); ++layer) {
      if (config.layer(layer).feed_forward != FeedForward::experts) continue;
      std::vector<float> up, down;  // with the gate before it, if the model has one
      const bool gated = config.block.gated;
      const std::string at =
          cat(config.model_prefix, "layers.", layer, gated ? ".mlp" : ".mixer", ".experts.");
      const auto append = [&](int64_t expert, const char* role, std::vector<float>& to) {
        const MappedTensor mapped =
            model.checkpoint.map(cat(at, expert, ".", role, "_proj.weight"));
        const auto* from = mapped.view.as<float>();
        to.insert(to.end(), from, from + mapped.view.shape.elements());
      };
      for (int64_t expert = 0; expert < count; ++expert) {
        if (gated) append(expert, "gate", up);
        append(expert, "up", up);
        append(expert, "down", down);
      }
      out.add(at + (gated ? "gate_up_proj" : "up_proj"), DType::f32,
              {count, (gated ? 2 : 1) * rows, config.dim}, up);
      out.add(at + "down_proj", DType::f32, {count, config.dim, rows}, down);
    }
    const Checkpoint together = out.write(model.golden.at("config"));
    CHECK(logits_of(together, model.ids) == logits_of(model.checkpoint, model.ids));
  }
}

TEST_CASE("expert forms: Granite and Gemma 4 with experts apart, as llm-compressor writes them") {
  for (const char* name : {"granite4", "gemma4-experts", "gemma4-vision-experts"}) {
    CAPTURE(std::string(name));
    const test::FamilyModel model(name);
    Rewritten out(model.checkpoint);
    const Checkpoint apart = rows_taken_apart(model.checkpoint, model.golden.at("config"), out);
    CHECK(logits_of(apart, model.ids) == logits_of(model.checkpoint, model.ids));
    // Scales made for one form count as near the weights of the other.
    const ModelIdentity one = model_identity(model.checkpoint, model.config);
    const ModelIdentity other = model_identity(apart, read_model_config(apart));
    REQUIRE(one.layers.size() == other.layers.size());
    for (size_t i = 0; i < one.layers.size(); ++i) {
      CHECK(one.layers[i].samples == other.layers[i].samples);
    }
  }
}

TEST_CASE("expert forms: quantised experts in one tensor give the bits of those apart") {
  for (const char* name : {"granite-moe-fp8", "gemma4-fp8"}) {
    CAPTURE(std::string(name));
    const auto [folder, golden, all_ids] = test::golden(cat("quantised/", name).c_str());
    const std::vector<int32_t>& ids = all_ids;
    const Checkpoint together = Checkpoint::open(folder);
    Rewritten out(together);
    const Checkpoint apart = rows_taken_apart(together, together.config(), out);
    CHECK(logits_of(apart, ids) == logits_of(together, ids));
    const auto backend = make_cpu_backend(2);
    const auto in_bf16 = [&](const Checkpoint& checkpoint) {
      ModelConfig config = read_model_config(checkpoint);
      config.dtype = DType::bf16;  // a type for which products read codes
      return test::run_model(checkpoint, config, *backend, ids);
    };
    CHECK(in_bf16(apart) == in_bf16(together));
  }
}

// One scale is for gate and up together, and products read each of them in place.
TEST_CASE("expert forms: one scale for each expert gives the bits of the same for each matrix") {
  const auto [folder, golden, ids] = test::golden("quantised/granite-moe-fp8");
  const Checkpoint from = Checkpoint::open(folder);
  Rewritten one_each(from), apart(from);
  constexpr std::string_view kMoe = "block_sparse_moe.";
  for (const auto& [name, location] : from.tensors()) {
    const MappedTensor whole = from.map(name);
    const Shape& shape = whole.view.shape;
    if (shape.rank() != 3) {
      one_each.keep(name);
      apart.keep(name);
      continue;
    }
    const bool scales = name.ends_with("_scale"), down = name.find("output_") != name.npos;
    const std::string before = cat(name.substr(0, name.find(kMoe) + kMoe.size()), "experts.");
    const int64_t count = shape[0], roles = down ? 1 : 2, rows = shape[1] / roles;
    std::vector<uint16_t> first;  // each expert's first scale
    for (int64_t i = 0; i < count * roles; ++i) {
      const std::string matrix = cat(before, i / roles, ".",
                                     down             ? "down"
                                     : i % roles == 0 ? "gate"
                                                      : "up",
                                     "_proj.");
      if (scales) {
        const uint16_t scale = whole.view.as<uint16_t>()[i / roles * shape[1]];
        if (i % roles == 0) first.push_back(scale);
        apart.add(matrix + "weight_scale", DType::bf16, Shape{1}, std::vector<uint16_t>{scale});
      } else {
        const auto* at = whole.view.as<uint8_t>() + i * rows * shape[2];
        apart.add(matrix + "weight", DType::f8_e4m3, {rows, shape[2]},
                  std::vector<uint8_t>(at, at + rows * shape[2]));
      }
    }
    if (scales) {
      one_each.add(name, DType::bf16, Shape{count, 1, 1}, first);
    } else {
      one_each.keep(name);
    }
  }
  const Checkpoint a = one_each.write(from.config()), b = apart.write(from.config());
  ModelConfig of_one = read_model_config(a), of_apart = read_model_config(b);
  CHECK(of_one.stored_as == "fp8, a scale for each expert; fp8, a scale for each row");
  of_one.dtype = of_apart.dtype = DType::bf16;  // f32 products read nothing in place
  const auto backend = make_cpu_backend(2);
  const LayerWeights layer = WeightLoader(a, of_one, *backend).layer(0);
  CHECK(!layer.experts.value().codes.empty());
  CHECK(test::run_model(a, of_one, *backend, ids) == test::run_model(b, of_apart, *backend, ids));
}

}  // namespace fp8kv
