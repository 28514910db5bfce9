#include "io/dialects.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>

#include "base/error.h"
#include "core/half.h"
#include "io/architectures.h"
#include "io/layer_name.h"

namespace fp8kv {
namespace {

const std::vector<Dialect>& rows() {
  static const std::vector<Dialect> kRows = {
      {"kv_scale",
       "one scale for K and V together",
       "TGI's FP8 KV-cache tools, AutoFP8 until July 2024",
       {{"self_attn.kv_scale", 'b'}}},
      {"k_scale/v_scale",
       "K and V apart, per tensor or per KV head",
       "compressed-tensors, AutoFP8, Quark",
       {{"self_attn.k_scale", 'k'}, {"self_attn.v_scale", 'v'}}},
  };
  return kRows;
}

// Scales that stand beside those of K and V and say nothing about the cache.
const char* why_ignored(std::string_view rest) {
  if (rest == "self_attn.q_scale" || rest == "self_attn.q_proj.output_scale") {
    return "scales of Q, which is not cached";
  }
  if (rest == "self_attn.prob_output_scale") return "scales of the softmax, which is not cached";
  if (rest == "self_attn.q_zero_point" || rest == "self_attn.k_zero_point" ||
      rest == "self_attn.v_zero_point") {
    return "zero points, which are 0";
  }
  return nullptr;
}

// Whether a name is a KV scale of some tool, in a form that no row describes. Weight and input
// scales of quantised projections (k_proj.weight_scale) are not.
bool looks_like_kv_scale(std::string_view name) {
  const size_t dot = name.rfind('.');
  const std::string_view last = dot == name.npos ? name : name.substr(dot + 1);
  const std::string_view before = dot == name.npos ? "" : name.substr(0, dot);
  const auto any_of = [](std::string_view text, auto... options) {
    return ((text == std::string_view(options)) || ...);
  };
  if (name.find("cache") != name.npos && name.find("scal") != name.npos) return true;
  if (any_of(last, "k_scale", "v_scale", "kv_scale", "key_scale", "value_scale")) return true;
  if (any_of(last, "k_scales", "v_scales", "kv_scales", "k_scale_inv", "v_scale_inv")) return true;
  return last == "output_scale" && (before.ends_with("k_proj") || before.ends_with("v_proj") ||
                                    before.ends_with("kv_proj") || before.ends_with("qkv_proj"));
}

std::string understood() {
  std::vector<std::string> forms;
  for (const Dialect& dialect : rows()) {
    std::vector<std::string> names;
    for (const ScalePattern& pattern : dialect.patterns) {
      names.push_back(cat("*.layers.N.", pattern.rest));
    }
    forms.push_back(join(names, " with "));
  }
  return join(forms, " or ");
}

// What the names of a checkpoint say, before a byte is read.
struct Collected {
  std::vector<ScaleTensor> tensors;
  std::vector<bool> dialect_used = std::vector<bool>(rows().size());
  std::string_view prefix;
  std::map<std::string, std::vector<std::string>> ignored;  // reason -> tensors
  std::vector<std::string> unknown;
};

// Adds `name` where a row describes it.
bool add_if_known(const std::string& name, const TensorEntry& entry, Collected& out) {
  const auto parts = split_layer_name(name);
  if (!parts) return false;
  for (size_t row = 0; row < rows().size(); ++row) {
    for (const ScalePattern& pattern : rows()[row].patterns) {
      if (pattern.rest != parts->rest) continue;
      if (!out.tensors.empty() && out.prefix != parts->prefix) {
        fail(quote(name), " and ", quote(out.tensors[0].name),
             ": scales of two different stacks of layers");
      }
      out.prefix = parts->prefix;
      out.dialect_used[row] = true;
      out.tensors.push_back({name, parts->layer, pattern.which, entry.dtype, entry.shape, {}});
      return true;
    }
  }
  const char* reason = why_ignored(parts->rest);
  if (reason) out.ignored[reason].push_back(name);
  return reason != nullptr;
}

Collected collect(const Checkpoint& checkpoint) {
  Collected out;
  for (const auto& [name, location] : checkpoint.tensors()) {
    if (add_if_known(name, location.entry, out)) continue;
    if (looks_like_kv_scale(name)) out.unknown.push_back(name);
  }
  if (out.unknown.empty()) return out;
  const std::string others =
      out.unknown.size() == 1 ? "" : cat(" (and ", count_of(out.unknown.size() - 1, "other"), ")");
  throw Error(
      cat("the tensor ", quote(out.unknown[0]), others,
          " looks like a KV scale, but is in a form that is not read; read are ", understood()),
      "calibrate the original model again, or rename the tensors");
}

float element(const char* bytes, DType dtype) {
  const auto load = [&]<typename T>(T value) {
    std::memcpy(&value, bytes, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::f32:
      return load(float{});
    case DType::f64:
      return static_cast<float>(load(double{}));
    case DType::f16:
      return f16_to_float(load(uint16_t{}));
    default:
      return bf16_to_float(load(uint16_t{}));
  }
}

void read_values(const Checkpoint& checkpoint, int64_t n_kv_heads, ScaleTensor& tensor) {
  const std::string where = quote(tensor.name);
  if (!is_compute_dtype(tensor.dtype) && tensor.dtype != DType::f64) {
    fail(where, ": is ", dtype_name(tensor.dtype), ", expected F32, F16, BF16 or F64");
  }
  const Shape& shape = tensor.shape;
  bool per_head = shape.rank() > 0 && shape[0] == n_kv_heads;
  bool single = true;
  for (size_t i = 0; i < shape.rank(); ++i) {
    single = single && shape[i] == 1;
    per_head = per_head && (i == 0 || shape[i] == 1);
  }
  if (!single && !per_head) {
    fail(where, ": has the shape ", shape.text(), ", expected [], [1] or one number for each of ",
         count_of(static_cast<uint64_t>(n_kv_heads), "KV head"));
  }
  const std::string bytes = checkpoint.read(tensor.name);
  const size_t size = dtype_bytes(tensor.dtype);
  for (size_t at = 0; at < bytes.size(); at += size) {
    const float value = element(bytes.data() + at, tensor.dtype);
    check_scale(value, cat(where, ":", bytes.size() > size ? cat(" head ", at / size) : ""));
    tensor.values.push_back(value);
  }
}

void check_zero_points(const Checkpoint& checkpoint, const Collected& found) {
  for (const auto& [reason, names] : found.ignored) {
    for (const std::string& name : names) {
      if (!name.ends_with("_zero_point")) continue;
      const std::string bytes = checkpoint.read(name);
      if (std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0; })) continue;
      fail(quote(name), ": is not 0: scales with an offset cannot be used");
    }
  }
}

float rounded_to(float value, DType dtype) {
  if (dtype == DType::bf16) return bf16_to_float(bf16_from_float(value));
  if (dtype == DType::f16) return f16_to_float(f16_from_float(value));
  return value;
}

// The tensors of one layer, by what they are for.
struct LayerTensors {
  const ScaleTensor* k = nullptr;
  const ScaleTensor* v = nullptr;
  const ScaleTensor* both = nullptr;
};

const ScaleTensor& larger(const ScaleTensor& a, const ScaleTensor& b) {
  const auto largest = [](const ScaleTensor& tensor) {
    return *std::max_element(tensor.values.begin(), tensor.values.end());
  };
  return largest(a) >= largest(b) ? a : b;
}

void check_agreement(const LayerTensors& layer) {
  const ScaleTensor& from = larger(*layer.k, *layer.v);
  const float apart = *std::max_element(from.values.begin(), from.values.end());
  const auto& values = layer.both->values;
  const float together = *std::max_element(values.begin(), values.end());
  if (together == apart || rounded_to(apart, layer.both->dtype) == together ||
      rounded_to(together, from.dtype) == apart) {
    return;
  }
  throw Error(
      cat(quote(layer.both->name), " is ", together, ", ", quote(from.name), " is ", apart,
          ": expected the same, as kv_scale is the maximum of K and V"),
      "they are from two calibrations: inject the right ones into the original model again");
}

LayerScales layer_scales(const LayerTensors& layer) {
  if (!layer.k && !layer.v) return {layer.both->values, layer.both->values};
  if (!layer.k || !layer.v) {
    const ScaleTensor& found = layer.k ? *layer.k : *layer.v;
    fail(quote(found.name), ": the scale of ", layer.k ? "V" : "K", " for it is missing");
  }
  if (layer.both) check_agreement(layer);
  return {layer.k->values, layer.v->values};
}

// The layers below `n_layers` that are not in `layers`, the first few by number.
std::string missing_layers(const std::map<int64_t, LayerTensors>& layers, int64_t n_layers) {
  constexpr size_t kMostShown = 4;
  std::vector<std::string> missing;
  for (int64_t layer = 0; layer < n_layers && missing.size() < kMostShown; ++layer) {
    if (!layers.contains(layer)) missing.push_back(cat(layer));
  }
  const int64_t count = n_layers - static_cast<int64_t>(layers.size());
  const int64_t others = count - static_cast<int64_t>(missing.size());
  if (others > 0) missing.push_back(count_of(static_cast<uint64_t>(others), "other"));
  return cat(count == 1 ? "layer " : "layers ", join(missing));
}

std::vector<LayerScales> assemble(const std::vector<ScaleTensor>& tensors, int64_t n_layers) {
  std::map<int64_t, LayerTensors> layers;
  for (const ScaleTensor& tensor : tensors) {
    if (tensor.layer >= n_layers) {
      fail(quote(tensor.name), ": there is no such layer, the model has ", n_layers);
    }
    LayerTensors& layer = layers[tensor.layer];
    (tensor.which == 'k' ? layer.k : tensor.which == 'v' ? layer.v : layer.both) = &tensor;
  }
  if (static_cast<int64_t>(layers.size()) < n_layers) {
    throw Error(cat("has KV scales for ", count_of(layers.size(), "layer"), ", but none for ",
                    missing_layers(layers, n_layers)),
                "a runtime would use 1 there without a word: calibrate again");
  }
  std::vector<LayerScales> scales;
  for (const auto& [number, layer] : layers) scales.push_back(layer_scales(layer));
  return scales;
}

Fp8Format format_of(const Json& config) {
  const auto named = config.find("kv_cache_torch_dtype");
  if (!named || named->as_string() == "float8_e4m3fn") return Fp8Format::e4m3fn;
  if (named->as_string() == "float8_e4m3fnuz") return Fp8Format::e4m3fnuz;
  fail(named->where(), ": is ", quote(named->as_string()),
       ", expected 'float8_e4m3fn' or 'float8_e4m3fnuz'");
}

std::vector<std::string> notes_on(const Collected& collected) {
  std::vector<std::string> notes;
  for (const auto& [reason, names] : collected.ignored) {
    const std::string others =
        names.size() == 1 ? "" : cat(" and ", count_of(names.size() - 1, "other"));
    notes.push_back(cat("ignored ", quote(names[0]), others, ": ", reason));
  }
  return notes;
}

std::string dialect_of(const Collected& collected) {
  std::vector<std::string> names;
  for (size_t row = 0; row < rows().size(); ++row) {
    if (collected.dialect_used[row]) names.push_back(rows()[row].name);
  }
  return join(names);
}

}  // namespace

std::span<const Dialect> dialects() {
  return rows();
}

std::optional<FoundScales> find_scales(const Checkpoint& checkpoint) {
  const std::string folder = quote(checkpoint.folder().string());
  Collected collected = with_context(folder, [&] { return collect(checkpoint); });
  if (collected.tensors.empty()) return std::nullopt;
  const ModelConfig shape = parse_model_shape(checkpoint.config());
  FoundScales found;
  found.dialect = dialect_of(collected);
  found.notes = notes_on(collected);
  found.kv_cache_torch_dtype = checkpoint.config().get_string("kv_cache_torch_dtype", "");
  found.scales.format = format_of(checkpoint.config());
  found.scales.model_type = shape.model_type;
  found.scales.n_kv_heads = shape.n_kv_heads;
  found.scales.provenance.source = found.dialect;
  with_context(folder, [&] {
    check_zero_points(checkpoint, collected);
    for (ScaleTensor& tensor : collected.tensors) read_values(checkpoint, shape.n_kv_heads, tensor);
    found.scales.layers = assemble(collected.tensors, shape.n_layers);
  });
  found.tensors = std::move(collected.tensors);
  check_values(found.scales, folder);
  return found;
}

FoundScales scales_at(const Checkpoint& checkpoint) {
  if (auto found = find_scales(checkpoint)) return *std::move(found);
  throw Error(cat(quote(checkpoint.folder().string()), ": has no KV scales; looked for tensors ",
                  understood()),
              "make some with 'fp8kv calibrate', and put them in with 'fp8kv inject'");
}

}  // namespace fp8kv
