// The parts of a scale file that say what its scales were made from: what was counted, and the
// magnitudes that were seen. Internal to scales; scale_file.h has the format.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/scales.h"
#include "json/json.h"

namespace fp8kv {

template <typename Layer>
void write_rows(JsonWriter& out, const char* name, const std::vector<Layer>& layers,
                std::vector<float> Layer::*part) {
  out.key(name).begin_array();
  for (const Layer& layer : layers) out.value(std::span<const float>(layer.*part));
  out.end_array();
}

// The member `key`, a whole number of at least 0.
uint64_t count_at(const Json& object, std::string_view key);

// What an array with a row for every layer must look like.
struct RowShape {
  std::vector<bool> has_cache;         // the rows of the others are []
  size_t per_row = 0;                  // numbers; 0: not known yet
  std::vector<size_t> of_layers = {};  // numbers of each row, where rows differ; else empty
};

// The same shape; where it does not know the numbers of a row, as many as the first one has.
RowShape with_row_length(RowShape shape, const Json& rows);

// Rows of numbers. Throws for any of another shape. REQUIRES a known per_row.
std::vector<std::vector<float>> read_rows(const Json& rows, const RowShape& shape);

// The members "counted"; "amax", its parts ("eighth", "quarter", "half") and "octaves". Nothing
// where they are not known.
void write_counted(JsonWriter& out, const Provenance& provenance);
void write_magnitudes(JsonWriter& out, const Provenance& provenance);

// `counted` is the member itself, `extension` the object that holds the others, or not.
void read_counted(const Json& counted, Provenance& out);
void read_magnitudes(const Json& extension, const RowShape& shape, Provenance& out);

}  // namespace fp8kv
