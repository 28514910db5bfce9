#include "io/scale_patch.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "io/layer_name.h"

namespace fp8kv {
namespace {

// What stands before "layers.N." in the names of the attention layers.
std::string attention_prefix(const Checkpoint& checkpoint, size_t n_layers) {
  std::map<std::string, std::set<int64_t>> layers;  // by prefix
  for (const auto& [name, location] : checkpoint.tensors()) {
    const auto parts = split_layer_name(name);
    if (parts && (parts->rest.starts_with("self_attn.k_proj.") ||
                  parts->rest.starts_with("self_attn.qkv_proj."))) {
      layers[std::string(parts->prefix)].insert(parts->layer);
    }
  }
  const std::string folder = quote(checkpoint.folder().string());
  if (layers.size() != 1) {
    fail(folder, ": has ", layers.empty() ? "no" : cat(layers.size()),
         " stacks of layers with tensors named *.layers.N.self_attn.k_proj.*, expected one");
  }
  const auto& [prefix, found] = *layers.begin();
  const auto last = static_cast<int64_t>(n_layers) - 1;
  if (found.size() == n_layers && *found.rbegin() == last) return prefix;
  fail(folder, ": has a K projection in ", count_of(found.size(), "layer"), " of ",
       quote(prefix + "layers"), ", expected it in layers 0 to ", last);
}

struct NamedScale {
  std::string name;
  float value;
};

// In the order of layers; kv_scale, k_scale, v_scale.
std::vector<NamedScale> named_scales(const KvScales& scales, const std::string& prefix) {
  std::vector<NamedScale> named;
  for (size_t layer = 0; layer < scales.layers.size(); ++layer) {
    const std::string at = cat(prefix, "layers.", layer, ".self_attn.");
    const float k = scales.layers[layer].k[0], v = scales.layers[layer].v[0];
    named.push_back({at + "kv_scale", std::max(k, v)});
    named.push_back({at + "k_scale", k});
    named.push_back({at + "v_scale", v});
  }
  return named;
}

std::string shard_bytes(const std::vector<NamedScale>& scales) {
  std::vector<TensorToWrite> tensors;
  for (const NamedScale& scale : scales) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&scale.value);
    tensors.push_back({scale.name, ConstTensorView(bytes, DType::f32, Shape{})});
  }
  return safetensors_bytes(tensors, {{"format", "pt"}});
}

// Bytes of all tensors, as the index counted them where it did, and of the scales.
int64_t total_size(const Checkpoint& checkpoint, uint64_t added) {
  const auto metadata = checkpoint.index() ? checkpoint.index()->find("metadata") : std::nullopt;
  const auto counted = metadata ? metadata->find("total_size") : std::nullopt;
  if (!counted) {
    uint64_t total = added;
    for (const auto& [name, location] : checkpoint.tensors()) {
      total += location.entry.end - location.entry.begin;
    }
    return static_cast<int64_t>(total);
  }
  int64_t total = 0;
  if (__builtin_add_overflow(counted->as_int(), static_cast<int64_t>(added), &total) || total < 0) {
    fail(counted->where(), ": is ", counted->brief(), ", expected the bytes of all tensors");
  }
  return total;
}

// In the format of Hugging Face's writers: names in order, two spaces, a newline at the end.
std::string index_text(const Checkpoint& checkpoint, const std::vector<NamedScale>& scales) {
  std::map<std::string, std::string> files;
  for (const auto& [name, location] : checkpoint.tensors()) {
    files[name] = checkpoint.shards()[location.shard].file;
  }
  for (const NamedScale& scale : scales) files[scale.name] = kScaleShard;

  JsonWriter out;
  out.begin_object().key("metadata").begin_object();
  const std::optional<Json>& old = checkpoint.index();
  if (const auto metadata = old ? old->find("metadata") : std::nullopt) {
    if (!metadata->is_object()) {
      fail(metadata->where(), ": is ", metadata->brief(), ", expected an object");
    }
    for (size_t i = 0; i < metadata->size(); ++i) {
      if (metadata->key(i) != "total_size") out.member(metadata->key(i), metadata->value(i));
    }
  }
  out.member("total_size", total_size(checkpoint, scales.size() * sizeof(float))).end_object();
  for (size_t i = 0; old && i < old->size(); ++i) {
    const std::string& key = old->key(i);
    if (key != "metadata" && key != "weight_map") out.member(key, old->value(i));
  }
  out.key("weight_map").begin_object();
  for (const auto& [name, file] : files) out.member(name, file);
  return out.end_object().end_object().text();
}

bool all_ones(const KvScales& scales) {
  return std::all_of(scales.layers.begin(), scales.layers.end(), [](const LayerScales& layer) {
    const auto is_one = [](float scale) { return scale == 1; };
    return std::all_of(layer.k.begin(), layer.k.end(), is_one) &&
           std::all_of(layer.v.begin(), layer.v.end(), is_one);
  });
}

std::vector<std::string> notes_on(const Checkpoint& checkpoint, const KvScales& scales) {
  std::vector<std::string> notes;
  if (fp8_spec(scales.format).fnuz) {
    notes.push_back("scales for E4M3FNUZ were halved to those for E4M3FN");
  }
  if (scales.per_head()) {
    notes.push_back(cat("the scales of ", scales.layers[0].k.size(),
                        " KV heads were reduced to their maximum: TGI has one per layer"));
  }
  if (scales.provenance.observation == "pre_rope") {
    notes.push_back(
        "K was observed before RoPE, but is cached after it, where a value can be up to 1.41 times "
        "as large and then saturates");
  }
  if (all_ones(scales)) {
    notes.push_back("every scale is 1, which is also what runtimes use when there is none");
  }
  if (!checkpoint.index()) {
    notes.push_back(
        "transformers prefers model.safetensors and so ignores the index and the scales: there the "
        "model works as before");
  }
  return notes;
}

}  // namespace

ScalePatch tgi_patch(const Checkpoint& checkpoint, const KvScales& scales) {
  const KvScales written = per_tensor(with_format(scales, Fp8Format::e4m3fn));
  const std::string prefix = attention_prefix(checkpoint, written.layers.size());
  const std::vector<NamedScale> named = named_scales(written, prefix);
  ScalePatch patch;
  patch.shard = shard_bytes(named);
  patch.index = index_text(checkpoint, named);
  patch.config = json_with_member(read_text(checkpoint.config_path()), "kv_cache_torch_dtype",
                                  cat('"', format_name(Fp8Format::e4m3fn), '"'));
  patch.notes = notes_on(checkpoint, scales);
  return patch;
}

}  // namespace fp8kv
