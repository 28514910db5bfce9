#include "checkpoint/drafts/stored_tensor.h"

#include "base/error.h"

namespace fp8kv {

void check_stored(const ModelWeights& weights, const ModelTensor& tensor) {
  const Weight weight = weights.at(tensor);
  if (weight.shape == tensor.shape && is_compute_dtype(weight.dtype)) return;
  throw Error(cat("tensor ", quote(tensor.name), ": is ", dtype_name(weight.dtype), " ",
                  weight.shape.text(), ", expected numbers of the shape ", tensor.shape.text()),
              kDraftNotMeasured);
}

}  // namespace fp8kv
