#include "checkpoint/layer_name.h"

#include <charconv>
#include <system_error>

#include "base/error.h"

namespace fp8kv {
namespace {

constexpr std::string_view kWithoutNumber = kLayersNames[2];

// Whether a name in a layer is of one of two attentions: "self_attn.1.o_proj".
bool is_paired(std::string_view rest) {
  const std::string_view name = kAttentionNames[0];
  return rest.starts_with(name) && rest.size() > name.size() + 3 && rest[name.size()] == '.' &&
         (rest[name.size() + 1] == '0' || rest[name.size() + 1] == '1') &&
         rest[name.size() + 2] == '.';
}

}  // namespace

std::optional<LayerName> split_layer_name(std::string_view name) {
  for (const std::string_view layers : kLayersNames) {
    if (const auto parts = split_layer_name(name, layers)) return parts;
  }
  return std::nullopt;
}

std::optional<LayerName> split_layer_name(std::string_view name, std::string_view layers) {
  size_t at = name.rfind(layers);
  // The "h." in "mlp.dense_4h_to_h.weight" does not name a stack.
  while (at != name.npos && at > 0 && name[at - 1] != '.') at = name.rfind(layers, at - 1);
  if (at == name.npos) return std::nullopt;
  LayerName parts;
  parts.prefix = name.substr(0, at);
  parts.layers = layers;
  const std::string_view after = name.substr(at + layers.size());
  if (layers == kWithoutNumber) {
    parts.rest = after;
    return parts;
  }
  const char* end = after.data() + after.size();
  const auto [stop, error] = std::from_chars(after.data(), end, parts.layer);
  if (error != std::errc() || parts.layer < 0 || parts.layer > INT32_MAX || stop == end ||
      *stop != '.')
    return std::nullopt;
  const auto digits = static_cast<size_t>(stop - after.data());
  if (after[0] == '-' || (digits > 1 && after[0] == '0')) return std::nullopt;
  parts.rest = after.substr(digits + 1);
  if (is_paired(parts.rest)) {
    parts.paired = true;
    parts.layer = 2 * parts.layer + (parts.rest[kAttentionNames[0].size() + 1] - '0');
  }
  return parts;
}

std::string layer_path(std::string_view stack, int64_t layer) {
  return stack.ends_with(kWithoutNumber) ? std::string(stack) : cat(stack, layer, ".");
}

std::string attention_path(std::string_view stack, std::string_view attention, bool paired,
                           int64_t layer) {
  if (!paired) return cat(layer_path(stack, layer), attention);
  return cat(layer_path(stack, layer / 2), attention, layer % 2, ".");
}

std::optional<std::string_view> in_attention(std::string_view rest) {
  if (is_paired(rest)) return rest.substr(kAttentionNames[0].size() + 3);
  for (const std::string_view name : kAttentionNames) {
    if (!rest.starts_with(name) || rest.substr(name.size(), 1) != ".") continue;
    return rest.substr(name.size() + 1);
  }
  return std::nullopt;
}

std::string attention_in(std::string_view rest) {
  if (is_paired(rest)) return cat(kAttentionNames[0], ".");
  return std::string(rest.substr(0, rest.size() - in_attention(rest)->size()));
}

std::string_view without_wrappers(std::string_view name) {
  constexpr std::string_view kAround[] = {"language_model.model.", "model.", "thinker."};
  for (const std::string_view around : kAround) {
    if (name.starts_with(around)) name.remove_prefix(around.size());
  }
  return name;
}

}  // namespace fp8kv
