// Which keys of config.json a family reads to learn which layers have a window.
// A family that is not in the table counts as reading all of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace fp8kv {

struct WindowReader {
  std::string_view model_type;
  std::string_view architecture;  // for a config without model_type; "" for none
  bool layer_types = false;
  bool pattern = false;   // sliding_window_pattern
  bool first = false;     // max_window_layers
  bool switched = false;  // use_sliding_window
  // The sliding_window of a config that has no such key; 0: none, or the config has to say it.
  int64_t usual_window = 0;
};

std::span<const WindowReader> window_readers();

// Whether the family of this config reads `key`; true for a key that is not of windows.
bool reads_window_key(const Json& text, std::string_view key);

// The sliding_window of the family for a config without the key; 0: none.
int64_t usual_window(const Json& text);

// The keys of windows that the config sets and its family does not read, in the table's order.
// Without sliding_window in the config that is layer_types alone.
std::vector<std::string> unread_window_keys(const Json& text);

}  // namespace fp8kv
