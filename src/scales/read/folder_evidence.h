// The scale file inside a folder that `inject` wrote: in the metadata of the scale shard.
#pragma once

#include <string>

#include "scales/read/found_scales.h"

namespace fp8kv {

// Gives scales that were read from tensors the provenance of their scale file, with amax and
// histograms. `text` is that file, or "" if the folder has none. A file that is unreadable or has
// other scales is skipped with a note. `where` is for messages.
void adopt_evidence(FoundScales& found, const std::string& text, const std::string& where);

}  // namespace fp8kv
