// Three lines about scales that calibration made: what they are, whether scales of 1 would have
// done, and what to do next.
#pragma once

#include <string>

#include "core/scales.h"
#include "report/certificate.h"
#include "report/serving_names.h"

namespace fp8kv {

struct ScalesSummary {
  enum class Tone { good, unsure, bad };
  std::string made;   // "scales of 6 layers, one per tensor, from 1,024 tokens in 8 windows"
  std::string at_1;   // "would not have done: 2 of 6 layers need their scales": what 1.0 ...
  std::string next;   // a command, or what to do first
  bool ready = true;  // `next` is inject_command(): nothing has to be done before
  Tone tone = Tone::good;
};

// REQUIRES `certificate` to be that of `scales`.
ScalesSummary summary_of(const KvScales& scales, const Certificate& certificate,
                         const ServingNames& names);

// "fp8kv inject MODEL --scales SCALES.json -o MODEL-fp8".
std::string inject_command(const KvScales& scales, const ServingNames& names);

// vLLM's, of the folder that inject makes: "vllm serve MODEL-fp8 --kv-cache-dtype fp8", with the
// layers that should stay in 16 bit.
std::string vllm_command(const Certificate& certificate, const ServingNames& names);

}  // namespace fp8kv
