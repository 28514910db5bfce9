#include "checkpoint/model/quantised_tensors.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "checkpoint/quant_config.h"
#include "core/numbers/half.h"

namespace fp8kv {
namespace {

std::string named_tensor(const Checkpoint& checkpoint, const std::string& name) {
  return cat(quote(checkpoint.folder().string()), ": tensor ", quote(name));
}

bool are_codes(const TensorEntry& entry) {
  if (entry.name.ends_with(".weight_packed") || entry.name.ends_with(".qweight")) return true;
  return entry.name.ends_with(".weight") && entry.shape.rank() >= 2 &&
         (fp8_format(entry.dtype) || entry.dtype == DType::i8);
}

// The scale tensor beside a weight, or nullptr.
const TensorEntry* scale_beside(const Checkpoint& checkpoint, const std::string& name) {
  const std::string module = name.substr(0, name.rfind('.'));
  for (const char* const suffix :
       {".weight_scale", ".weight_scale_inv", ".scale", ".qscale_weight", ".scales"}) {
    if (const TensorEntry* const found = checkpoint.find(module + suffix)) return found;
  }
  return nullptr;
}

void check_said(const Checkpoint& checkpoint) {
  const TensorEntry* codes = nullptr;  // the first tensor of codes
  std::vector<std::string> modules;
  for (const auto& [name, location] : checkpoint.tensors()) {
    if (!are_codes(location.entry)) continue;
    if (codes == nullptr) codes = &location.entry;
    modules.push_back(name.substr(0, name.rfind('.')));
  }
  if (codes == nullptr) return;
  const QuantConfig quant = read_quant_config(checkpoint);
  if (!quantised_weights(quant, modules).empty()) return;
  const TensorEntry* const scale = scale_beside(checkpoint, codes->name);
  throw Error(
      cat(named_tensor(checkpoint, codes->name), ": is ", dtype_name(codes->dtype),
          scale ? cat(" with a scale in ", quote(scale->name)) : " without a scale beside it",
          ", but ",
          quant.method == QuantMethod::none
              ? "config.json has no quantization_config"
              : "the quantization_config of config.json says nothing of weights"),
      "add the quantization_config of the tool that quantised the model, or take the model in 16 "
      "bit that it was made from");
}

bool is_input_scale(std::string_view name) {
  return name.ends_with("input_scale") || name.ends_with(".input_global_scale");
}

double value_at(const std::string& bytes, size_t at, DType dtype) {
  uint16_t half = 0;
  float single = 0;
  if (dtype == DType::f32) {
    std::memcpy(&single, bytes.data() + at, sizeof(single));
    return single;
  }
  std::memcpy(&half, bytes.data() + at, sizeof(half));
  return dtype == DType::f16 ? f16_to_float(half) : bf16_to_float(half);
}

void check_input_scale(const Checkpoint& checkpoint, const TensorEntry& entry) {
  const std::string bytes = checkpoint.read(entry.name);
  const size_t width = dtype_bytes(entry.dtype);
  for (size_t at = 0; at + width <= bytes.size(); at += width) {
    const double scale = value_at(bytes, at, entry.dtype);
    if (std::isfinite(scale) && scale > 0) continue;
    throw Error(cat(named_tensor(checkpoint, entry.name), ": element ", at / width, " is ", scale,
                    ", expected a finite scale above 0"),
                "runtimes divide the inputs of a product by it: quantise the model again");
  }
}

}  // namespace

void check_quantised_tensors(const Checkpoint& checkpoint) {
  check_said(checkpoint);
  for (const std::string& name : input_scale_tensors(checkpoint)) {
    check_input_scale(checkpoint, checkpoint.at(name));
  }
}

std::vector<std::string> input_scale_tensors(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const auto& [name, location] : checkpoint.tensors()) {
    if (is_input_scale(name) && is_compute_dtype(location.entry.dtype)) names.push_back(name);
  }
  return names;
}

}  // namespace fp8kv
