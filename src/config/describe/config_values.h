// Values of a config.json, under any of their spellings and within bounds.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "core/model_description.h"
#include "json/json.h"

namespace fp8kv {

// Far above any model, far below what could overflow a product of two.
inline constexpr int64_t kLargestDim = int64_t(1) << 28;
inline constexpr int64_t kLongestContext = INT32_MAX;

using Spellings = std::initializer_list<const char*>;
inline constexpr Spellings kExpertCount = {"num_local_experts", "num_experts", "n_routed_experts",
                                           "moe_num_experts"};
inline constexpr Spellings kDim = {"hidden_size", "n_embd", "d_model"};
inline constexpr Spellings kHiddenDim = {"intermediate_size", "ffn_dim", "n_inner",
                                         "ffn_hidden_size"};
inline constexpr Spellings kContext = {"max_position_embeddings", "n_positions",
                                       "model_max_length"};
inline constexpr Spellings kLayerCount = {"num_hidden_layers", "n_layer", "num_layers"};

// The first of "architectures"; "" where there is none.
std::string architecture_name(const Json& config);

// The first of the spellings that the config has.
std::optional<Json> find_any(const Json& config, Spellings keys);
// Like find_any, but an error names the first, the usual spelling.
Json at_any(const Json& config, Spellings keys);

// How many layers the config says that there are: by a number, else by the list or the letters that
// tell what each is, which is all that newer configs of Nemotron-H have.
int64_t layer_count(const Json& config);

// Unlike Json::find, true for a key whose value is null.
bool mentions(const Json& object, std::string_view key);

// A switch that is on where the config does not have the key. Throws for null, which counts as off
// in transformers.
bool is_on(const Json& config, const char* key);

// Throws where the flag is true: `what` it asks for is not computed.
void refuse_if_set(const Json& config, const char* key, const char* what);

// Throws unless the number is finite and above 0.
double positive_number(const Json& number);
// The one under `key`; `otherwise` where there is none.
double positive_or(const Json& text, const char* key, double otherwise);

// Throws unless the number is in `least` to `most`.
int64_t in_range(const Json& number, int64_t least, int64_t most);
inline int64_t in_range(const Json& number, int64_t most) {
  return in_range(number, 1, most);
}

// Throws where the two are there and say different things: two spellings of one key.
void check_same(const std::optional<Json>& one, const std::optional<Json>& other);

}  // namespace fp8kv
