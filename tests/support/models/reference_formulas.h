// The formulas of a forward pass, each for one number or one row, in double precision.
#pragma once

#include <vector>

#include "core/block.h"
#include "core/config.h"

namespace fp8kv::test {

double activated(double x, Activation activation);
// 0: no cap.
double capped(double x, double cap);
// What pair `pair` of a head of `head_dim` elements turns by from one position to the next.
double frequency(const RopeConfig& rope, double pair, double head_dim);
double sigmoid(double x);
// What each expert counts for one row, of the router's logits and the bias of its choice, which may
// be empty; 0 for those that are not chosen.
std::vector<double> expert_weights(const std::vector<double>& logits,
                                   const std::vector<double>& bias, const Routing& routing);

}  // namespace fp8kv::test
