// The spellings of a rope in config.json: rope_scaling up to transformers 4, rope_parameters from 5
// on. Which members a rope has is no part of this.
#pragma once

#include <optional>

#include "config/families/rope_style.h"
#include "json/json.h"

namespace fp8kv {

// The member that names the type of a rope.
std::optional<Json> type_of(const Json& scaling);

// The object with what is not plain, in either spelling; nullopt if there is none.
std::optional<Json> find_scaling(const Json& text);

// The first member that is an object.
std::optional<Json> find_object_in(const Json& object);

// Throws where the two spellings contradict each other.
void check_spellings(const Json& text, const RopeStyle& style);

// Throws where rope_scaling says more than the full_attention of `parameters`, or otherwise.
// REQUIRES `parameters` with an object for a type of layer.
void check_scaling_repeats(const Json& text, const Json& parameters);

}  // namespace fp8kv
