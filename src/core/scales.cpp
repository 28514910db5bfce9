#include "core/scales.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "core/dtype.h"

namespace fp8kv {
namespace {

bool is_fnuz(Fp8Format format) {
  return fp8_spec(format).fnuz;
}

bool is_e4m3(Fp8Format format) {
  return fp8_spec(format).mantissa_bits == 3;
}

void check_each(const std::vector<float>& per_head, const char* which, const std::string& where) {
  for (size_t head = 0; head < per_head.size(); ++head) {
    check_scale(per_head[head], cat(where, ": the ", which, " scale",
                                    per_head.size() > 1 ? cat(" of head ", head) : ""));
  }
}

}  // namespace

bool KvScales::per_head() const {
  return !layers.empty() && layers[0].k.size() > 1;
}

float largest(std::span<const float> heads) {
  return heads.empty() ? 0 : *std::max_element(heads.begin(), heads.end());
}

float scale_from_amax(float amax, Fp8Format format, double headroom) {
  // fnuz is defined through fn: same code, half the value.
  const Fp8Format fn = is_e4m3(format) ? Fp8Format::e4m3fn : Fp8Format::e5m2;
  const float reciprocal = 1.0f / fp8_spec(fn).max;
  const float scale = amax == 0 ? 1.0f : amax * reciprocal * static_cast<float>(headroom);
  return is_fnuz(format) ? 2 * scale : scale;
}

KvScales with_format(const KvScales& scales, Fp8Format format) {
  if (is_e4m3(scales.format) != is_e4m3(format)) {
    throw Error(
        cat("scales made for ", format_name(scales.format), " cannot serve ", format_name(format)),
        "an E5M2 cache runs without scales; calibrate for E4M3 otherwise");
  }
  KvScales converted = scales;
  converted.format = format;
  if (is_fnuz(scales.format) == is_fnuz(format)) return converted;
  const float factor = is_fnuz(format) ? 2.0f : 0.5f;
  for (LayerScales& layer : converted.layers) {
    for (float& scale : layer.k) scale *= factor;
    for (float& scale : layer.v) scale *= factor;
  }
  return converted;
}

KvScales per_tensor(const KvScales& scales) {
  KvScales reduced = scales;
  for (LayerScales& layer : reduced.layers) {
    layer.k = {largest(layer.k)};
    layer.v = {largest(layer.v)};
  }
  return reduced;
}

void check_scale(float scale, const std::string& where) {
  if (std::isnormal(scale) && scale > 0) return;
  const std::string found = std::isnan(scale) ? "NaN" : cat(scale);
  throw Error(cat(where, " is ", found, ", expected a positive, finite, normal number"),
              "a scale of 0 or below means 'missing' or undefined to every runtime; calibrate "
              "again or repair the source");
}

void check_values(const KvScales& scales, const std::string& source) {
  if (scales.layers.empty()) fail(source, ": has no layers");
  const size_t heads = scales.layers[0].k.size();
  for (size_t layer = 0; layer < scales.layers.size(); ++layer) {
    const LayerScales& found = scales.layers[layer];
    if (found.k.empty() || found.k.size() != heads || found.v.size() != heads) {
      fail(source, ": layer ", layer, ": has ", found.k.size(), " K and ", found.v.size(),
           " V scales, expected ", std::max<size_t>(heads, 1), " of each");
    }
    check_each(found.k, "K", cat(source, ": layer ", layer));
    check_each(found.v, "V", cat(source, ": layer ", layer));
  }
}

void check_fits(const KvScales& scales, const ModelDescription& model, const std::string& source) {
  const std::string help = "were they made for this model?";
  if (static_cast<int64_t>(scales.layers.size()) != model.n_layers()) {
    throw Error(cat(source, ": has scales for ", count_of(scales.layers.size(), "layer"),
                    ", the model has ", model.n_layers()),
                help);
  }
  const auto heads = static_cast<int64_t>(scales.layers[0].k.size());
  const bool per_head = heads > 1;
  if ((per_head && heads != model.n_kv_heads()) ||
      (scales.n_kv_heads != 0 && scales.n_kv_heads != model.n_kv_heads())) {
    throw Error(
        cat(source, ": has scales for ",
            count_of(static_cast<uint64_t>(per_head ? heads : scales.n_kv_heads), "KV head"),
            ", the model has ", model.n_kv_heads()),
        help);
  }
  if (!scales.model_type.empty() && !model.model_type.empty() &&
      scales.model_type != model.model_type) {
    throw Error(cat(source, ": is for model_type ", quote(scales.model_type), ", the model is ",
                    quote(model.model_type)),
                help);
  }
}

std::string format_name(Fp8Format format) {
  return std::string(torch_name(dtype_of(format)));
}

}  // namespace fp8kv
