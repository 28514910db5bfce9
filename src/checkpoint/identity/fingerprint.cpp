#include "checkpoint/identity/fingerprint.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/digest.h"
#include "base/error.h"
#include "checkpoint/layer_name.h"

namespace fp8kv {
namespace {

constexpr uint64_t kBlockBytes = 1024;
constexpr uint64_t kBlocks = 4;

// In the order of reading. The first four are K and V, in two spellings. Each of the others stands
// for K and V together, or for the latent.
constexpr size_t kApart = 4;
constexpr std::array<std::string_view, 12> kFingerprinted = {
    "k_proj", "v_proj", "wk_dv",           "wv_dv", "qkv_proj",
    "W_pack", "c_attn", "query_key_value", "wqkv",  "kv_a_proj_with_mqa",
    "Wqkv",   "wkv"};
// Two are packed weights: those of GPTQ or AWQ, and those of compressed-tensors. The last is beside
// adapters.
constexpr std::array<std::string_view, 5> kParts = {"weight", "bias", "qweight", "weight_packed",
                                                    "base_layer.weight"};

// A stack of layers: the parts of its tensors' names before and after the layer's number.
struct Stack {
  std::string prefix;     // "model."
  std::string layers;     // "layers.", "h."
  std::string attention;  // "self_attn."
  bool paired = false;    // see LayerName
  auto operator<=>(const Stack&) const = default;
};

std::string projection_name(const Stack& stack, int64_t layer, std::string_view projection,
                            std::string_view part) {
  return cat(attention_path(stack.layers, stack.attention, stack.paired, layer), projection, ".",
             part);
}

// The parts of a name such as "model.layers.3.self_attn.k_proj.weight".
struct Place {
  Stack stack;
  int64_t layer = 0;
  std::string_view projection;
};

std::optional<Place> find_place(std::string_view name, std::string_view layers) {
  const auto parts = split_layer_name(name, layers);
  const auto rest = parts ? in_attention(parts->rest) : std::nullopt;
  if (!rest) return std::nullopt;
  const size_t dot = rest->find('.');
  if (dot == rest->npos || rest->substr(dot + 1) == "bias") return std::nullopt;
  const auto known = [](const auto& list, std::string_view item) {
    return std::find(list.begin(), list.end(), item) != list.end();
  };
  const std::string_view projection = rest->substr(0, dot);
  if (!known(kFingerprinted, projection) || !known(kParts, rest->substr(dot + 1))) {
    return std::nullopt;
  }
  return Place{
      {std::string(parts->prefix), std::string(layers), attention_in(parts->rest), parts->paired},
      parts->layer,
      projection};
}

// The stack in which the most layers have K and V; nullopt if no layer has both.
std::optional<Stack> find_stack(const Checkpoint& checkpoint, int64_t n_layers) {
  std::map<Stack, std::map<int64_t, std::set<std::string_view>>> found;
  for (const auto& [name, location] : checkpoint.tensors()) {
    for (const std::string_view called : kLayersNames) {
      const auto place = find_place(name, called);
      if (!place || place->layer >= n_layers) continue;
      found[place->stack][place->layer].insert(place->projection);
    }
  }
  std::optional<Stack> best;
  size_t most = 0;
  for (const auto& [stack, layers] : found) {
    size_t complete = 0;
    for (const auto& [layer, has] : layers) {
      const bool both = (has.contains("k_proj") && has.contains("v_proj")) ||
                        (has.contains("wk_dv") && has.contains("wv_dv"));
      complete += both || std::any_of(kFingerprinted.begin() + kApart, kFingerprinted.end(),
                                      [&](std::string_view fused) { return has.contains(fused); });
    }
    if (complete > most) {
      best = stack;
      most = complete;
    }
  }
  return best;
}

void add_tensor(Sha256& digest, const Checkpoint& checkpoint, const TensorEntry& entry,
                const std::string& name) {
  digest.add(cat(name, " ", dtype_name(entry.dtype), " ", entry.shape.text(), "\n"));
  const uint64_t size = entry.end - entry.begin;
  if (size <= kBlocks * kBlockBytes) {
    digest.add(checkpoint.read(entry.name));
    return;
  }
  for (uint64_t block = 0; block < kBlocks; ++block) {
    const uint64_t offset = (size - kBlockBytes) * block / (kBlocks - 1);
    digest.add(checkpoint.read(entry.name, offset, kBlockBytes));
  }
}

}  // namespace

std::optional<std::string> find_fingerprint(const Checkpoint& checkpoint,
                                            const ModelDescription& model) {
  const std::optional<Stack> stack = find_stack(checkpoint, model.n_layers());
  if (!stack) return std::nullopt;
  Sha256 digest;
  for (int64_t layer = 0; layer < model.n_layers(); ++layer) {
    for (const std::string_view projection : kFingerprinted) {
      for (const std::string_view part : kParts) {
        const std::string name = projection_name(*stack, layer, projection, part);
        if (const TensorEntry* entry = checkpoint.find(stack->prefix + name)) {
          add_tensor(digest, checkpoint, *entry, name);
        }
      }
    }
  }
  return "kv-proj-v1:" + digest.hex();
}

std::string model_fingerprint(const Checkpoint& checkpoint, const ModelDescription& model) {
  if (const auto found = find_fingerprint(checkpoint, model)) return *found;
  fail(quote(checkpoint.folder().string()),
       ": has no K and V projections to identify the model by; looked for "
       "'layers.0.self_attn.k_proj.weight' and the like under any prefix");
}

}  // namespace fp8kv
