// The parts of a scale file that say what its scales were made from: what was counted, and the
// magnitudes that were seen. Internal to io; scale_file.h has the format.
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

// [n_layers][per_layer] numbers; per_layer 0 lets the first row decide.
std::vector<std::vector<float>> read_rows(const Json& rows, size_t n_layers, size_t per_layer);

// The members "counted"; "amax" and "octaves". Nothing where they are not known.
void write_counted(JsonWriter& out, const Provenance& provenance);
void write_magnitudes(JsonWriter& out, const Provenance& provenance);

// `counted` is the member itself, `extension` the object that holds amax and octaves, or not.
void read_counted(const Json& counted, Provenance& out);
void read_magnitudes(const Json& extension, size_t n_layers, int64_t n_kv_heads, Provenance& out);

}  // namespace fp8kv
