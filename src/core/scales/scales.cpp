#include "core/scales/scales.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "core/numbers/dtype.h"
#include "core/numbers/fp8.h"

namespace fp8kv {
namespace {

// The factor that turns a scale for `from` into one for `to`. Formats with equally many mantissa
// bits have the same codes, for values that differ by a power of two, so the factor is exact.
float factor_between(KvFormat from, KvFormat to) {
  return std::ldexp(1.0f, kv_range(to).bias - kv_range(from).bias);
}

void check_each(const std::vector<float>& per_head, const char* which, const std::string& where) {
  for (size_t head = 0; head < per_head.size(); ++head) {
    check_scale(per_head[head], cat(where, ": the ", which, " scale",
                                    per_head.size() > 1 ? cat(" of head ", head) : ""));
  }
}

constexpr const char* kMadeForAnother =
    "use scales that 'fp8kv calibrate' made from this very model";

// Checks that exactly the layers that write a cache have scales.
void check_layers(const KvScales& scales, const ModelDescription& model,
                  const std::string& source) {
  const std::vector<bool> has_cache = layers_with_cache(model);
  const size_t n_layers = has_cache.size();
  const auto has_scales = [&](size_t layer) {
    return layer < scales.layers.size() && scales.layers[layer].has_cache();
  };
  std::vector<size_t> missing, too_many;
  for (size_t layer = 0; layer < std::max(n_layers, scales.layers.size()); ++layer) {
    const bool wanted = layer < n_layers && has_cache[layer];
    if (wanted && !has_scales(layer)) missing.push_back(layer);
    if (!wanted && has_scales(layer)) too_many.push_back(layer);
  }
  // Only a source that names some layers alone may end before the last layer.
  const bool every_layer = scales.cached_layers() == scales.layers.size();
  const bool too_short = scales.layers.size() < n_layers && every_layer && !missing.empty();
  if (scales.layers.size() > n_layers || too_short) {
    throw Error(cat(source, ": is for ", count_of(scales.layers.size(), "layer"),
                    ", the model has ", n_layers),
                kMadeForAnother);
  }
  if (!missing.empty() && model.unclear) {
    throw Error(cat(source, ": has no scales for ", layer_list(missing),
                    ", and which layers of the model write a KV cache is not known: ",
                    model.unclear->what()),
                model.unclear->help());
  }
  if (!missing.empty()) {
    throw Error(cat(source, ": has no scales for ", layer_list(missing),
                    ", where the model writes a KV cache"),
                kMadeForAnother);
  }
  if (too_many.empty()) return;
  throw Error(cat(source, ": has scales for ", layer_list(too_many),
                  ", where the model writes no KV cache"),
              kMadeForAnother);
}

void check_latent(const KvScales& scales, const ModelDescription& model,
                  const std::string& source) {
  for (size_t layer = 0; layer < scales.layers.size(); ++layer) {
    const LayerScales& own = scales.layers[layer];
    const bool v_in_k = layer < model.layers.size() && model.layers[layer].v_in_k;
    if (!v_in_k || own.k == own.v) continue;
    throw Error(cat(source, ": layer ", layer, ": the scale of K is ", fp8kv::largest(own.k),
                    " and that of V ", fp8kv::largest(own.v),
                    ", but this model caches one latent vector, which has one scale for both"),
                "calibrate again: what was measured is not what is cached");
  }
}

void check_draft(const DraftScales& draft, bool latent, const std::string& where) {
  const std::vector<float>&k = draft.scales.k, &v = draft.scales.v;
  if (k.empty() || k.size() != v.size()) {
    fail(where, ": has ", k.size(), " K and ", v.size(), " V scales, expected as many of each");
  }
  if (latent && k != v) {
    fail(where, ": K has the scale ", k[0], " and V ", v[0],
         ", expected one for both, since the cache is a latent vector");
  }
  check_each(k, "K", where);
  check_each(v, "V", where);
}

// The number of scales that a layer with a cache needs. `most` is the largest number in any layer.
size_t expected_scales(const KvScales& scales, size_t layer, size_t most) {
  const bool differ = most > 1 && layer < scales.layer_kv_heads.size();
  return differ ? static_cast<size_t>(scales.layer_kv_heads[layer]) : std::max<size_t>(most, 1);
}

// Checks, for scales per head, that each layer has as many heads in the model.
void check_heads(const KvScales& scales, const ModelDescription& model, const std::string& source) {
  if (!scales.per_head() || model.unclear) return;
  for (size_t layer = 0; layer < scales.layers.size(); ++layer) {
    const auto found = static_cast<int64_t>(scales.layers[layer].k.size());
    if (found == 0 || found == model.layers[layer].n_kv_heads) continue;
    throw Error(cat(source, ": has scales for ", count_of(static_cast<uint64_t>(found), "KV head"),
                    " in layer ", layer, ", the model has ", model.layers[layer].n_kv_heads),
                kMadeForAnother);
  }
  for (const DraftScales& draft : scales.drafts) {
    const size_t found = draft.scales.k.size();
    if (found == 1 || static_cast<int64_t>(found) == model.n_kv_heads()) continue;
    throw Error(cat(source, ": has scales for ", count_of(found, "KV head"), " in the draft layer ",
                    draft.layer, ", the model has ", model.n_kv_heads()),
                kMadeForAnother);
  }
}

}  // namespace

size_t KvScales::scales_per_layer() const {
  if (!layer_kv_heads.empty()) {
    size_t most = 0;
    for (const LayerScales& layer : layers) most = std::max(most, layer.k.size());
    return most;
  }
  const auto cached = std::find_if(layers.begin(), layers.end(),
                                   [](const LayerScales& layer) { return layer.has_cache(); });
  return cached == layers.end() ? 0 : cached->k.size();
}

size_t KvScales::cached_layers() const {
  return static_cast<size_t>(std::count_if(
      layers.begin(), layers.end(), [](const LayerScales& layer) { return layer.has_cache(); }));
}

const char* observation_name(Observation observation) {
  if (observation == Observation::before_rope) return "pre_rope";
  return observation == Observation::after_rope ? "post_rope" : "";
}

std::optional<Observation> observation_from_name(std::string_view name) {
  for (const Observation known :
       {Observation::unknown, Observation::before_rope, Observation::after_rope}) {
    if (name == observation_name(known)) return known;
  }
  return std::nullopt;
}

float largest(std::span<const float> heads) {
  return heads.empty() ? 0 : *std::max_element(heads.begin(), heads.end());
}

float scale_from_amax(float amax, KvFormat format, double headroom) {
  // The fnuz formats are defined through fn: the same code, with another power of two.
  const KvFormat fn = is_nvfp4(format)  ? KvFormat::nvfp4
                      : is_e4m3(format) ? KvFormat::e4m3fn
                                        : KvFormat::e5m2;
  const float scale = amax == 0 ? 1.0f : amax / kv_range(fn).max * static_cast<float>(headroom);
  return is_nvfp4(format) ? scale : scale * factor_between(fn, format);
}

KvScales with_format(const KvScales& scales, KvFormat format) {
  if (is_nvfp4(scales.format) != is_nvfp4(format)) {
    throw Error(
        cat("scales made for ", format_name(scales.format), " cannot serve ", format_name(format)),
        cat("calibrate for it: 'fp8kv calibrate --kv-cache-dtype ",
            is_nvfp4(format) ? "nvfp4" : "fp8_e4m3", "'"));
  }
  if (is_nvfp4(format)) return scales;
  if (is_e4m3(scales.format) != is_e4m3(format)) {
    throw Error(
        cat("scales made for ", format_name(scales.format), " cannot serve ", format_name(format)),
        "an E5M2 cache runs without scales; calibrate for E4M3 otherwise");
  }
  KvScales converted = scales;
  converted.format = format;
  const float factor = factor_between(scales.format, format);
  for_each_layer(converted, [&](LayerScales& layer) {
    for (std::vector<float>* each : {&layer.k, &layer.v, &layer.q}) {
      for (float& scale : *each) scale *= factor;
    }
  });
  return converted;
}

KvScales with_q_scales(const KvScales& scales, const std::string& source) {
  if (scales.latent) {
    throw Error(cat(source, ": is for a cache of latents, expected one of K and V"),
                "no runtime is known that takes scales of Q beside latents");
  }
  KvScales made = scales;
  for (size_t i = 0; i < made.layers.size(); ++i) {
    LayerScales& layer = made.layers[i];
    if (!layer.has_cache() || !layer.q.empty()) continue;
    if (i >= scales.provenance.amax.size() || scales.provenance.amax[i].q.empty()) {
      throw Error(cat(source, ": layer ", i, ": has no scale of Q, and no maximum of Q"),
                  "calibrate the model: 'fp8kv calibrate' measures Q too");
    }
    layer.q = {scale_from_amax(largest(scales.provenance.amax[i].q), made.format, 1)};
  }
  return made;
}

bool has_q_scales(const KvScales& scales) {
  return std::any_of(scales.layers.begin(), scales.layers.end(),
                     [](const LayerScales& layer) { return !layer.q.empty(); });
}

KvFormat stored_format(KvFormat format) {
  return is_nvfp4(format) ? format : KvFormat::e4m3fn;
}

KvScales per_tensor(const KvScales& scales) {
  KvScales reduced = scales;
  for_each_layer(reduced, [](LayerScales& layer) {
    if (!layer.has_cache()) return;
    layer.k = {largest(layer.k)};
    layer.v = {largest(layer.v)};
  });
  return reduced;
}

void check_scale(float scale, const std::string& where) {
  // E4M3 decides the limit: E5M2 runs without scales, and NVFP4 has a largest value of 6 * 448 but
  // a smaller scale.
  constexpr float kLargestCode = fp8_spec(Fp8Format::e4m3fn).max;
  if (std::isnormal(scale) && scale > 0) {
    if (std::isfinite(scale * kLargestCode)) return;
    throw Error(cat(where, " is ", scale, ", expected at most ",
                    std::numeric_limits<float>::max() / kLargestCode,
                    ": the largest code times this scale is infinite"),
                "no runtime can serve it; calibrate again or repair the source");
  }
  const std::string found = std::isnan(scale) ? "NaN" : cat(scale);
  throw Error(cat(where, " is ", found, ", expected a positive, finite, normal number"),
              "a scale of 0 or below means 'missing' or undefined to every runtime; calibrate "
              "again or repair the source");
}

void check_values(const KvScales& scales, const std::string& source) {
  if (scales.layers.empty()) fail(source, ": has no layers");
  if (scales.cached_layers() == 0) fail(source, ": has no layer with a KV cache");
  const size_t heads = scales.scales_per_layer();
  const bool with_q = has_q_scales(scales);
  for (size_t layer = 0; layer < scales.layers.size(); ++layer) {
    const LayerScales& found = scales.layers[layer];
    if (!found.has_cache()) continue;
    const size_t expected = expected_scales(scales, layer, heads);
    if (found.k.size() != expected || found.v.size() != expected) {
      fail(source, ": layer ", layer, ": has ", found.k.size(), " K and ", found.v.size(),
           " V scales, expected ", expected, " of each");
    }
    if (scales.latent && found.k != found.v) {
      fail(source, ": layer ", layer, ": K has the scale ", found.k[0], " and V ", found.v[0],
           ", expected one for both, since the cache is a latent vector");
    }
    check_each(found.k, "K", cat(source, ": layer ", layer));
    check_each(found.v, "V", cat(source, ": layer ", layer));
    check_each(found.q, "Q", cat(source, ": layer ", layer));
    if (found.q.size() != (with_q ? 1 : 0)) {
      fail(source, ": layer ", layer, ": has ", found.q.size(), " scales of Q, expected ",
           with_q ? "1, as other layers have" : "none");
    }
  }
  for (const DraftScales& draft : scales.drafts) {
    check_draft(draft, scales.latent, cat(source, ": draft layer ", draft.layer));
  }
}

std::vector<bool> layers_with_cache(const ModelDescription& model) {
  std::vector<bool> has_cache;
  for (int64_t layer = 0; layer < model.n_layers(); ++layer) {
    has_cache.push_back(model.unclear || model.writes_cache(layer));
  }
  return has_cache;
}

void check_fits(const KvScales& scales, const ModelDescription& model, const std::string& source) {
  check_layers(scales, model, source);
  const std::string help = kMadeForAnother;
  const auto heads = static_cast<int64_t>(scales.scales_per_layer());
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
  check_heads(scales, model, source);
  check_latent(scales, model, source);
}

float fused_scale(const LayerScales& layer) {
  return std::max(largest(layer.k), largest(layer.v));
}

std::string layer_list(const std::vector<size_t>& layers) {
  std::vector<std::string> runs;
  for (size_t i = 0; i < layers.size();) {
    size_t end = i + 1;
    while (end < layers.size() && layers[end] == layers[end - 1] + 1) ++end;
    // Two layers in a row would not be shorter as a range.
    if (end - i > 2) {
      runs.push_back(cat(layers[i], "-", layers[end - 1]));
    } else {
      for (size_t j = i; j < end; ++j) runs.push_back(cat(layers[j]));
    }
    i = end;
  }
  return (layers.size() == 1 ? "layer " : "layers ") + join(runs);
}

void for_each_layer(KvScales& scales, const std::function<void(LayerScales&)>& change) {
  for (LayerScales& layer : scales.layers) change(layer);
  for (DraftScales& draft : scales.drafts) change(draft.scales);
}

}  // namespace fp8kv
