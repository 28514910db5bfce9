// Documents at places that are spread evenly over files, read without the rest of them.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "data/data_source.h"
#include "data/text_stream.h"
#include "json/json.h"

namespace fp8kv {

// One byte in each of `count` equal parts of `total` bytes, drawn by `seed`, rising. The last
// sixteenth of each part is left out, so that two places are never next to each other.
std::vector<uint64_t> sample_places(uint64_t total, uint64_t count, uint64_t seed);

struct SampleVisitor {
  // `fraction`: which part of the document the place is in, from 0 to below 1. Both return whether
  // there was anything in it.
  std::function<bool(std::string_view text)> text;
  std::function<bool(const Json& record, double fraction)> record;
};

// The document at each of `places`, bytes of the file: the record that holds it, or the next one
// that was not taken yet and has something in it; of a text the `text_bytes` behind the place, from
// the begin of a line where there is one. Throws for what cannot be read but from its begin.
void visit_sample(const DataSource& source, const std::vector<uint64_t>& places, size_t text_bytes,
                  const SampleVisitor& visit);

}  // namespace fp8kv
