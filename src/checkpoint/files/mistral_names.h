// The names of tensors in Mistral's own files and in those of transformers, and the order of rows
// in which the two differ.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/files/row_order.h"
#include "formats/safetensors.h"
#include "json/json.h"

namespace fp8kv {

// The name that transformers gives a tensor of Mistral's file. `prefix` is "" or
// "language_model.", for a language model inside of another. Returns nullopt for an unknown name.
std::optional<std::string> name_in_transformers(std::string_view own, std::string_view prefix);

// The reverse, for messages. Returns `name` itself if it has no other one.
std::string name_in_mistral(std::string_view name);

// Whether a tensor of Mistral's file belongs to the part for images.
bool is_of_images(std::string_view own);

// The order of the rows of a tensor that has the name of transformers, by `text`, the config of the
// language model. Q and K have another one, and so have their scales if each row has one. Throws
// for scales of another shape.
RowOrder row_order_of(const TensorEntry& entry, const Json& text);

}  // namespace fp8kv
