// Heads of layers that differ from the other layers' heads.
#pragma once

#include "core/model/model_description.h"
#include "json/json.h"

namespace fp8kv {

// Sets the heads of a layer without a window, if the config gives it heads of its own.
void set_global_heads(const Json& text, LayerDescription& layer);

// Sets the heads and the reach of a layer with a window.
void set_window(const Json& text, LayerDescription& layer);

// Reads the keys that list the heads of single layers: KV heads, head sizes and query heads.
void set_listed_heads(const Json& text, ModelDescription& out);

}  // namespace fp8kv
