// Every activation by its definition in double, and the error allowed for arithmetic in floats.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/model/block.h"

namespace fp8kv::test {

struct NamedActivation {
  std::string name;
  Activation activation;
  double (*of)(double x);
  // `unit`: the unit roundoff, 2^-24 for floats.
  double (*error)(double x, double unit);
};

inline double gelu_inner(double x) {
  return std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
}

inline const std::vector<NamedActivation>& activations() {
  static const std::vector<NamedActivation> all = {
      // exp is within 2 units in the last place, which is 4 roundings; then a sum and a quotient.
      {"silu", Activation::silu, [](double x) { return x / (1 + std::exp(-x)); },
       [](double x, double unit) { return 6 * unit * std::abs(x / (1 + std::exp(-x))); }},
      // silu of 2 u. The 7 roundings of u change the result of exp by as many times 2 u.
      {"gelu_tanh", Activation::gelu_tanh,
       [](double x) { return x / (1 + std::exp(-2 * gelu_inner(x))); },
       [](double x, double unit) {
         const double result = x / (1 + std::exp(-2 * gelu_inner(x)));
         const double steep = x < 0 ? std::min(std::abs(2 * gelu_inner(x)), 200.0) : 1;
         return (6 + 7 * (1 + steep)) * unit * std::abs(result) + 1e-36;
       }},
      // 1 + erf cancels for negative x: the remainder is off by a few units of 1.
      {"gelu_erf", Activation::gelu_erf,
       [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); },
       [](double x, double unit) { return 5 * unit * std::abs(x); }},
      {"relu", Activation::relu, [](double x) { return std::max(x, 0.0); },
       [](double, double) { return 0.0; }},
      {"relu squared", Activation::relu_squared, [](double x) { return x < 0 ? 0.0 : x * x; },
       [](double x, double unit) { return unit * x * x + 0x1p-149; }},
      // silu without the factor x.
      {"sigmoid", Activation::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); },
       [](double x, double unit) { return 6 * unit / (1 + std::exp(-x)) + 1e-36; }},
      // The errors of exp and of the sum reach the logarithm, which is at least 0.69 for x >= 0.
      {"softplus", Activation::softplus,
       [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); },
       [](double x, double unit) {
         return 8 * unit * (std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)))) + 1e-36;
       }},
  };
  return all;
}

}  // namespace fp8kv::test
