// The magnitude histograms of a calibration as a safetensors file. Used to compute policies
// elsewhere, and to merge separate counts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "policy/magnitudes.h"

namespace fp8kv {

// Each layer N has the tensors "layers.N.{q,k,v}.bins", U64 [n_kv_heads, kMagnitudeBins], and
// "layers.N.{q,k,v}.amax", F32 [n_kv_heads]. Bin b holds magnitudes from magnitude_bin_floor(b) up
// to the next bin's floor. Bin 0 holds zero and everything below, the last bin everything above.
// The metadata holds the schema, "fp8kv.histograms/1", and the exponents of the range.
// If losses were measured, each layer also has "layers.N.{k,v}.losses", U64 [n_kv_heads,
// kScaleMantissas], in units of kLossUnit (core/scales/scale_grid.h).
std::string histogram_file_bytes(const std::vector<LayerMagnitudes>& layers);

// Throws, naming file and tensor, unless the file has exactly this form.
std::vector<LayerMagnitudes> read_histogram_file(const std::filesystem::path& path);

}  // namespace fp8kv
