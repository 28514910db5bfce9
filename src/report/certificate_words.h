// What a certificate says of the model, in words.
#pragma once

#include <string>

#include "report/certificate.h"

namespace fp8kv {

// "layers 0 and 1 need their scales; 1.0 is safe in the other 4": names every layer
// with a cache once. "too little text: 10 tokens; about 990 more are needed" where no verdict can
// be given.
std::string verdict_sentence(const Certificate& certificate);

// The needs of Q where attention computes in FP8: "Q saturates at 1.0 in layers 0 and 1; 1.0 is
// safe in the other 4". "" where nothing is known of Q.
std::string q_sentence(const Certificate& certificate);

// The flag by which vLLM keeps the layers that should stay in 16 bit out of FP8, by their numbers
// (vllm-project/vllm#33695); "" when there are none, or too little text to tell.
std::string skip_flag(const Certificate& certificate);

}  // namespace fp8kv
