// A weight as a checkpoint has it where it is quantised: in which form, and in which tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/quantised_matrix.h"
#include "core/tensor.h"
#include "formats/safetensors.h"

namespace fp8kv {

// Where tensors are looked for; null where there is none of the name.
using FindTensor = std::function<const TensorEntry*(const std::string& name)>;

struct StoredWeight {
  const char* form = "";  // "fp8", "nvfp4", ...: see weight_forms.h
  // Without its pointers. Of all experts in one tensor it has the rows of one after another.
  QuantisedMatrix matrix;
  const char* scales_for = "";  // "each expert"; "": what the matrix says
  // The matrix has the order of the plain tensor, which has rows as columns: what it is decoded to
  // is turned as that is.
  bool turned = false;
  // The tensors that these are to point at; null where the form has none.
  const TensorEntry* codes = nullptr;
  const TensorEntry* scales = nullptr;
  const TensorEntry* zeros = nullptr;
  const TensorEntry* groups = nullptr;
  const TensorEntry* overall = nullptr;
};

// All of them that are there.
std::vector<const TensorEntry*> tensors_of(const StoredWeight& weight);

// The matrix with its pointers: `find` gives the memory of each tensor, in the order of tensors_of.
QuantisedMatrix matrix_of(const StoredWeight& weight,
                          const std::function<ConstTensorView(const TensorEntry&)>& find);

// "fp8 (F8_E4M3), a scale for each row", for people.
std::string form_text(const StoredWeight& weight);

// Throws for a scale that is no finite number, also times the largest code, or is negative, for a
// scale of 0 whose codes are not all 0, and for a group that is not there. Codes packed into words
// may have negative scales, as AutoRound writes them, and groups of NVFP4 scales that rounding made
// 0. `matrix` with pointers to memory of the host. `source`: "'model'", for messages.
void check_values(const StoredWeight& weight, const QuantisedMatrix& matrix,
                  const std::string& source);

}  // namespace fp8kv
