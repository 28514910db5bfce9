// A quantised weight as a checkpoint stores it: its form and its tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/model/quantised_matrix.h"
#include "core/numbers/tensor.h"
#include "formats/safetensors.h"

namespace fp8kv {

// Finds a tensor by name; returns null if there is none.
using FindTensor = std::function<const TensorEntry*(const std::string& name)>;

// The shape of a decoded weight: [rows, columns], or [experts, rows, columns].
struct WeightShape {
  WeightShape(const Shape& all) : whole(all) {}  // NOLINT: a shape says it all but for bands
  WeightShape(const Shape& all, int64_t n_bands) : whole(all), bands(n_bands) {}

  Shape whole;
  int64_t bands = 1;  // parts of the rows that may have blocks of their own
};

struct StoredWeight {
  const char* form = "";  // "fp8", "nvfp4", ...: see weight_forms.h
  // Without pointers. If one tensor holds all experts, their rows follow one another.
  QuantisedMatrix matrix;
  const char* scales_for = "";  // "each expert"; "": as the matrix says
  // Equal parts of the rows, each with blocks of its own: Q, K and V fused in shards (MiMo V2.5).
  // The matrix is then that of the first part.
  int64_t bands = 1;
  // The matrix is stored like the plain tensor, with rows and columns exchanged. Its decoded form
  // is exchanged in the same way.
  bool turned = false;
  // The tensors that the matrix will point to; null if the form has none.
  const TensorEntry* codes = nullptr;
  const TensorEntry* scales = nullptr;
  const TensorEntry* zeros = nullptr;
  const TensorEntry* groups = nullptr;
  const TensorEntry* overall = nullptr;
};

// One of the bands of a matrix with pointers.
QuantisedMatrix band_of(const StoredWeight& weight, const QuantisedMatrix& matrix, int64_t band);
// The value at a row of all bands. REQUIRES host memory.
float stored_value(const StoredWeight& weight, const QuantisedMatrix& matrix, int64_t row,
                   int64_t column);

// The tensors that are there.
std::vector<const TensorEntry*> tensors_of(const StoredWeight& weight);

// Returns the matrix with pointers. `find` gives the memory of each tensor, in the order of
// tensors_of.
QuantisedMatrix matrix_of(const StoredWeight& weight,
                          const std::function<ConstTensorView(const TensorEntry&)>& find);

// "fp8 (F8_E4M3), a scale for each row", for people.
std::string form_text(const StoredWeight& weight);

// Checks scales and groups. `matrix` must point to host memory. `source`: "'model'", for messages.
// Throws for a scale that is negative or not finite, or that overflows with the largest code.
// Throws for a scale of 0 with nonzero codes, and for a group that does not exist. Codes packed
// into words may have negative scales, as AutoRound writes them. NVFP4 groups may have scales that
// rounding made 0.
void check_values(const StoredWeight& weight, const QuantisedMatrix& matrix,
                  const std::string& source);

}  // namespace fp8kv
