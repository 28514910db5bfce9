// Draft layers and their scales, as commands show them.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/draft_layers.h"
#include "core/scales.h"
#include "json/json.h"

namespace fp8kv {

// The line of a checkpoint that has draft layers, and its member "draft_layers"; nothing without.
std::string draft_layers_text(const std::vector<DraftLayer>& layers, const KvScales& scales);
void draft_layers_json(JsonWriter& json, const std::vector<DraftLayer>& layers,
                       const KvScales& scales);

// The member "draft_layers" of what calibrate made; nothing where there are none.
void drafts_json(JsonWriter& json, const std::vector<DraftScales>& drafts);

}  // namespace fp8kv
