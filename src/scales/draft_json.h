// The member of a scale file that holds the scales of draft layers. Internal to scales;
// scale_file.h has the format.
#pragma once

#include "core/scales/scales.h"
#include "json/json.h"

namespace fp8kv {

// Writes the member `draft_layers`, if there are draft layers.
void write_drafts(JsonWriter& out, const KvScales& scales);

// `extension` is the object that may have the member. Throws if the member is malformed.
void read_drafts(const Json& extension, KvScales& out);

}  // namespace fp8kv
