// The runtimes that scales can be written for: a table, one row each. And which quantised models
// each of them cannot take.
#pragma once

#include <span>
#include <string>

#include "checkpoint/quant_config.h"

namespace fp8kv {

struct InjectTarget {
  // quantization_config of a model that has none. With one it is extended in its own form instead.
  enum class Block { none, compressed_tensors, fp8 };

  std::string name;
  std::string summary;    // for people
  std::string runtime;    // for messages: "TGI"
  bool is_file = false;   // the output is a scale file, not a model folder
  bool fused = false;     // writes kv_scale, the larger of K's and V's
  bool apart = false;     // writes k_scale and v_scale
  bool portable = false;  // k_scale and v_scale under the names that the model's family needs
  Block block = Block::none;
  bool drafts = false;    // layers that draft tokens get scales too
  bool per_head = false;  // keeps one scale per KV head, where the form has room for them
  bool nvfp4 = false;     // takes scales of NVFP4 caches too
  bool queries = false;   // takes scales of Q too
};

std::span<const InjectTarget> inject_targets();

// Throws a usage error, with the nearest name, for one that is not in the table.
const InjectTarget& inject_target_at(const std::string& name);

// Why scales for this runtime cannot be added to a model quantised like that; "" when they can.
std::string why_refused(const InjectTarget& target, QuantMethod method);

}  // namespace fp8kv
