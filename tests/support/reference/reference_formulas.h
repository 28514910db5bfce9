// The formulas of a forward pass in double precision, each for one number or one row.
#pragma once

#include <vector>

#include "core/model/block.h"
#include "core/model/config.h"

namespace fp8kv::test {

double activated(double x, Activation activation);
// Caps x softly at `cap`; 0 means no cap.
double capped(double x, double cap);
// The angle that pair `pair` of a head with `head_dim` elements rotates by per position.
double frequency(const RopeConfig& rope, double pair, double head_dim);
double sigmoid(double x);
// The weight of each expert for one row; 0 for experts that are not chosen. `logits` are the
// router's. `bias` shifts the choice, and may be empty.
std::vector<double> expert_weights(const std::vector<double>& logits,
                                   const std::vector<double>& bias, const Routing& routing);

}  // namespace fp8kv::test
