// The keys of config.json by which each family decides which layers have a window. A family without
// a row counts as a reader of all of them.
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
  // The window of a config without sliding_window. 0: no window, or the config must give it.
  int64_t usual_window = 0;
  int64_t usual_period = 0;  // see usual_pattern
  bool full_first = false;   // in each period the first layer sees all tokens, else the last
  bool full_last = false;    // periods are counted from the last layer, which sees all tokens
};

std::span<const WindowReader> window_readers();

// Whether this config's family reads `key`; true for a key that does not concern windows.
bool reads_window_key(const Json& text, std::string_view key);

// The family's default for a missing sliding_window; 0: no window.
int64_t usual_window(const Json& text);

// The layers that see all tokens among others with a window, where the config does not say which:
// layer i for which i % period is `full`. `period` 0: the family has no such rule.
struct WindowPattern {
  int64_t period = 0;
  int64_t full = 0;
};
WindowPattern usual_pattern(const Json& text);

// The window keys that the config sets but its family does not read, in the table's order. If the
// config has no sliding_window, only layer_types counts.
std::vector<std::string> unread_window_keys(const Json& text);

}  // namespace fp8kv
