// The windows of a calibration as a draft layer sees them: each token but the last of a window,
// with the token after it.
#pragma once

#include <cstdint>
#include <vector>

#include "calib/windows/window_plan.h"

namespace fp8kv {

// The windows without their first token, in batches that match those of the model. Windows of one
// token are left out.
struct NextTokens {
  NextTokens(const std::vector<std::vector<int32_t>>& windows, const WindowPlan& of_model);

  std::vector<std::vector<int32_t>> ids;
  WindowPlan plan;
};

// The rows of a model batch that have a next token, window after window.
std::vector<int32_t> rows_with_next(const std::vector<std::vector<int32_t>>& windows,
                                    const WindowBatch& batch);

}  // namespace fp8kv
