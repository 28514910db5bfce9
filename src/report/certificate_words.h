// Describes a certificate in words.
#pragma once

#include <string>

#include "report/certificate.h"

namespace fp8kv {

// "layers 0 and 1 need their scales; 1.0 is safe in the other 4": names every layer with a cache
// once. If no verdict is possible: "too little text: 10 tokens; about 990 more are needed".
std::string verdict_sentence(const Certificate& certificate);

// The needs of Q if attention computes in FP8: "Q saturates at 1.0 in layers 0 and 1; 1.0 is safe
// in the other 4". "" if nothing is known of Q.
std::string q_sentence(const Certificate& certificate);

// vLLM's flag that leaves layers out of FP8, by their numbers (vllm-project/vllm#33695), for layers
// that should stay in 16 bit. "" if there are none, or too little text to tell.
std::string skip_flag(const Certificate& certificate);

}  // namespace fp8kv
