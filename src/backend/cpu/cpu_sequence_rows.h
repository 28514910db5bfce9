// The rows of sequences and the time steps of rows, for the CPU's ops that keep a state.
#pragma once

#include <cmath>
#include <cstdint>

#include "backend/backend.h"
#include "base/error.h"

namespace fp8kv {

// The rows of one sequence of a step.
struct SequenceRows {
  int64_t first = 0;
  int64_t end = 0;
  bool begins = false;  // starts from a state of zeros
  int64_t slot = -1;    // the slot of its state; -1: none
};

inline SequenceRows rows_of(const Batch& batch, int64_t sequence) {
  SequenceRows rows;
  const int32_t* indptr = batch.indptr.as<int32_t>() + sequence;
  rows.first = indptr[0];
  rows.end = indptr[1];
  rows.begins = rows.first == rows.end || batch.positions.as<int32_t>()[rows.first] == 0;
  if (batch.states.data != nullptr) rows.slot = batch.states.as<int32_t>()[sequence];
  FP8KV_ASSERT(rows.begins || rows.slot >= 0);
  return rows;
}

inline int64_t sequences_of(const Batch& batch) {
  return batch.indptr.shape[0] - 1;
}

inline float softplus(float x) {
  return x > 20.0f ? x : std::log1p(std::exp(x));
}

// A row's step plus its bias as a time step, clamped to the op's bounds. NaN stays NaN.
inline float time_step(const Recurrence& args, float raw) {
  const float step = softplus(raw);
  const float least = step < args.least_step ? args.least_step : step;
  return least > args.most_step ? args.most_step : least;
}

}  // namespace fp8kv
