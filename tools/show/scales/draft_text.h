// Draft layers and their scales in the output of commands.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/drafts/draft_layers.h"
#include "core/scales/scales.h"
#include "json/json.h"

namespace fp8kv {

// The line about draft layers, and below it the member "draft_layers". Both write nothing without
// draft layers.
std::string draft_layers_text(const std::vector<DraftLayer>& layers, const KvScales& scales);
void draft_layers_json(JsonWriter& json, const std::vector<DraftLayer>& layers,
                       const KvScales& scales);

// The member "draft_layers" of a calibration. Writes nothing without draft layers.
void drafts_json(JsonWriter& json, const std::vector<DraftScales>& drafts);

}  // namespace fp8kv
