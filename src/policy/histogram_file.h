// The magnitude histograms of a calibration as a safetensors file: for policies computed elsewhere,
// and for those that merge what was counted apart.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "policy/magnitudes.h"

namespace fp8kv {

// Per layer N the tensors "layers.N.{q,k,v}.bins", U64 [n_kv_heads, kMagnitudeBins], and
// "layers.N.{q,k,v}.amax", F32 [n_kv_heads]. Bin b holds magnitudes from magnitude_bin_floor(b) up
// to the next bin's; bin 0 everything below, zero too; the last everything above. The metadata
// gives the schema, "fp8kv.histograms/1", and the exponents of the range.
std::string histogram_file_bytes(const std::vector<LayerMagnitudes>& layers);

// Throws, naming file and tensor, for anything but such a file.
std::vector<LayerMagnitudes> read_histogram_file(const std::filesystem::path& path);

}  // namespace fp8kv
