// The features of only some families. Each can be left out.
#pragma once

#include <span>

#include "core/model/config.h"

namespace fp8kv::test {

struct Knob {
  const char* what;
  const char* golden;  // a model that has it
  void (*leave_out)(ModelConfig& config);
};

std::span<const Knob> family_knobs();
std::span<const Knob> later_knobs();   // of families of 2026
std::span<const Knob> newest_knobs();  // of families of late 2026

}  // namespace fp8kv::test
