// Reads documents at evenly spread places in files, without reading the rest.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "data/data_source.h"
#include "data/text_stream.h"
#include "json/json.h"

namespace fp8kv {

// Draws one byte from each of `count` equal parts of `total` bytes, by `seed`, in ascending order.
// Skips the last sixteenth of each part, so that two places are never adjacent.
std::vector<uint64_t> sample_places(uint64_t total, uint64_t count, uint64_t seed);

struct SampleVisitor {
  // `fraction`: the position of the place within the document, from 0 to below 1. Both return
  // whether the document had any content.
  std::function<bool(std::string_view text)> text;
  std::function<bool(const Json& record, double fraction)> record;
};

// Visits the document at each of `places`, which are byte offsets in the file. In record files it
// is the record at the place, or the next one with content that was not taken yet. In a text it is
// `text_bytes` from the next line on, if a line begins nearby, else from the place itself.
// Throws for data that can only be read from its beginning.
void visit_sample(const DataSource& source, const std::vector<uint64_t>& places, size_t text_bytes,
                  const SampleVisitor& visit);

}  // namespace fp8kv
