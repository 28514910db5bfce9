// Three lines about calibrated scales: what they are, whether scales of 1 would have sufficed, and
// the next step.
#pragma once

#include <string>

#include "core/scales/scales.h"
#include "report/certificate.h"
#include "report/serving_names.h"

namespace fp8kv {

struct ScalesSummary {
  enum class Tone { good, unsure, bad };
  std::string made;   // "scales of 6 layers, one per tensor, from 1,024 tokens in 8 windows"
  std::string at_1;   // about scales of 1.0: "would not have done: 2 of 6 layers need their scales"
  std::string next;   // a command, or what to do before it
  bool ready = true;  // `next` begins with inject_command(): nothing has to come first
  Tone tone = Tone::good;
};

// REQUIRES that `certificate` belongs to `scales`.
ScalesSummary summary_of(const KvScales& scales, const Certificate& certificate,
                         const ServingNames& names);

// "fp8kv inject MODEL --scales SCALES.json -o MODEL-fp8".
std::string inject_command(const KvScales& scales, const ServingNames& names);

// vLLM's command for the folder that inject makes, or for the model if it drops the scales: "vllm
// serve MODEL-fp8 --kv-cache-dtype fp8", with the flag for layers that should stay in 16 bit.
std::string vllm_command(const Certificate& certificate, const ServingNames& names);

}  // namespace fp8kv
