// Reads values of a config.json under any of their spellings, and checks their bounds.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "core/model/model_description.h"
#include "json/json.h"

namespace fp8kv {

// Far above any model, and far below any number whose product with another could overflow.
inline constexpr int64_t kLargestDim = int64_t(1) << 28;
inline constexpr int64_t kLongestContext = INT32_MAX;

using Spellings = std::initializer_list<const char*>;
inline constexpr Spellings kExpertCount = {"num_local_experts", "num_experts", "n_routed_experts",
                                           "moe_num_experts"};
inline constexpr Spellings kDim = {"hidden_size", "n_embd", "d_model", "n_embed"};
inline constexpr Spellings kHiddenDim = {"intermediate_size", "ffn_dim", "n_inner",
                                         "ffn_hidden_size"};
inline constexpr Spellings kContext = {"max_position_embeddings", "n_positions",
                                       "model_max_length"};
inline constexpr Spellings kLayerCount = {"num_hidden_layers", "n_layer", "num_layers", "n_layers"};

// The first entry of "architectures"; "" if there is none.
std::string architecture_name(const Json& config);

// The value of the first spelling that the config has.
std::optional<Json> find_any(const Json& config, Spellings keys);
// Like find_any, but throws if no key exists. The error names the first, usual spelling.
Json at_any(const Json& config, Spellings keys);

// The number of layers. It comes from a count, else from the list or the letters that give each
// layer's kind: newer configs of Nemotron-H have no more than these.
int64_t layer_count(const Json& config);

// Unlike Json::find, true for a key whose value is null.
bool mentions(const Json& object, std::string_view key);

// A switch that is on if the config does not have the key. Throws for null, which transformers
// reads as off.
bool is_on(const Json& config, const char* key);

// Throws if the flag is true. `what` names the unsupported feature that it asks for.
void refuse_if_set(const Json& config, const char* key, const char* what);

// Throws unless the member is absent or has the value that the architecture uses. `what` names what
// it chooses.
void check_says(const Json& text, const char* key, const char* expected, const char* what);

// Throws unless the number is finite and above 0.
double positive_number(const Json& number);
// The positive number under `key`, or `otherwise` if the key is missing.
double positive_or(const Json& text, const char* key, double otherwise);

// Throws unless the number is in `least` to `most`.
int64_t in_range(const Json& number, int64_t least, int64_t most);
inline int64_t in_range(const Json& number, int64_t most) {
  return in_range(number, 1, most);
}

// For two spellings of one key: throws if both exist and their values differ.
void check_same(const std::optional<Json>& one, const std::optional<Json>& other);

}  // namespace fp8kv
