// Ops of models with several residual streams, as plain loops.
#pragma once

#include "backend/backend.h"
#include "base/machine/thread_pool.h"

namespace fp8kv {

// See the functions of Backend with the same names.
void cpu_scale_columns(ThreadPool& pool, const TensorView& x, const ColumnFactors& factors);
void cpu_mix_streams(ThreadPool& pool, const ConstTensorView& x, const ConstTensorView& shares,
                     const StreamSum& how, const TensorView& y);
void cpu_stream_gates(ThreadPool& pool, const ConstTensorView& keys, const ConstTensorView& queries,
                      const TensorView& gates);
void cpu_match_rms(ThreadPool& pool, const TensorView& x, const ConstTensorView& like);
void cpu_cut_below(ThreadPool& pool, const TensorView& x, float deviations);

}  // namespace fp8kv
