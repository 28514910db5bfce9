// Reads and writes the evidence in a scale file: what was counted, and the magnitudes that were
// seen.
// Internal to scales; scale_file.h has the format.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/scales/scales.h"
#include "json/json.h"

namespace fp8kv {

template <typename Layer>
void write_rows(JsonWriter& out, const char* name, const std::vector<Layer>& layers,
                std::vector<float> Layer::*part) {
  out.key(name).begin_array();
  for (const Layer& layer : layers) out.value(std::span<const float>(layer.*part));
  out.end_array();
}

// Returns the member `key`, an integer of at least 0.
uint64_t count_at(const Json& object, std::string_view key);

// The expected shape of an array with one row for every layer.
struct RowShape {
  std::vector<bool> has_cache;         // layers without a cache have the row []
  size_t per_row = 0;                  // numbers in a row; 0: not known yet
  std::vector<size_t> of_layers = {};  // numbers in each row, if rows differ; else empty
};

// Returns the shape with per_row known: if it was 0, it is the length of the first row.
RowShape with_row_length(RowShape shape, const Json& rows);

// Reads rows of numbers. Throws if the shape differs. REQUIRES a known per_row.
std::vector<std::vector<float>> read_rows(const Json& rows, const RowShape& shape);

// Write the members "counted", "amax", its parts ("eighth", "quarter", "half") and "octaves".
// Unknown ones are left out.
void write_counted(JsonWriter& out, const Provenance& provenance);
void write_magnitudes(JsonWriter& out, const Provenance& provenance);

// `counted` is the member itself. `extension` is the object that may hold the other members.
void read_counted(const Json& counted, Provenance& out);
void read_magnitudes(const Json& extension, const RowShape& shape, Provenance& out);

}  // namespace fp8kv
