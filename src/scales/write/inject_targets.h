// A table with one row for each runtime that scales can be written for, and the quantised models
// that each of them cannot take.
#pragma once

#include <span>
#include <string>

#include "checkpoint/quant_config.h"

namespace fp8kv {

struct InjectTarget {
  // The quantization_config for a model without one. A model's own config is extended in its form.
  enum class Block { none, compressed_tensors, fp8 };

  std::string name;
  std::string summary;    // for people
  std::string runtime;    // for messages: "TGI"
  bool is_file = false;   // the output is a scale file, not a model folder
  bool fused = false;     // writes kv_scale, the larger of K's and V's
  bool apart = false;     // writes k_scale and v_scale
  bool portable = false;  // k_scale and v_scale, with the names that the model's family needs
  Block block = Block::none;
  bool drafts = false;    // writes scales of draft layers too
  bool per_head = false;  // keeps one scale per KV head, if the form has room for them
  bool nvfp4 = false;     // takes scales of NVFP4 caches too
  bool queries = false;   // takes scales of Q too
};

std::span<const InjectTarget> inject_targets();

// Throws a usage error for an unknown name, with the nearest known one.
const InjectTarget& inject_target_at(const std::string& name);

// Why a model with this quantisation cannot take scales for this runtime; "" if it can.
std::string why_refused(const InjectTarget& target, QuantMethod method);

}  // namespace fp8kv
