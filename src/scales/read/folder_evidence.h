// The scale file that travels in a folder of `inject`: in the metadata of the shard of scales.
#pragma once

#include <string>

#include "scales/read/found_scales.h"

namespace fp8kv {

// Gives the scales that were read from tensors the provenance of the file that they were made of,
// with its amax and histograms. `text` is that file, or "" where the folder has none. A file that
// cannot be read, or that has other scales, is left aside with a note. `where` is for messages.
void adopt_evidence(FoundScales& found, const std::string& text, const std::string& where);

}  // namespace fp8kv
