// A table with one row for each way to serve: how people serve a folder with each runtime.
// runtime_rules.h says what the runtime does with the folder's scales.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "scales/rules/runtime_rules.h"

namespace fp8kv {

// The cache that the user asks for.
enum class CacheFlag {
  of_scales,  // the cache that the scales are for, by the runtime's name
  fp8,        // E4M3
  nvfp4,
  e5m2,        // FP8 in E5M2
  own_scales,  // a cache that makes its own scales: int8_per_token_head, turboquant_k8v4
  automatic,   // the runtime's default
};

// Resolves `of_scales` to the cache that the folder's scales are for.
CacheFlag asked_cache(CacheFlag flag, FactSet facts);

struct Server {
  const char* runtime;  // runtime and key are spelled as in a column
  const char* key;
  const char* before;          // the command before the folder: "vllm serve "
  const char* before_drafter;  // the command before the folder of a drafter; "" if it has none
  const char* after_drafter;
  const char* file_flag;   // the option before a scale file; "" if it takes none
  const char* e4m3;        // for --kv-cache-dtype
  const char* nvfp4;       // for --kv-cache-dtype; "" if it has no such cache
  RuntimeOutcome of_e5m2;  // the outcome for the scales in an E5M2 cache
  const char* e5m2_sentence;
};

struct Gpu {
  const char* name;  // "mi300"
  bool fnuz;         // its E4M3 is FNUZ, so scales must be doubled
};
std::span<const Gpu> known_gpus();

// Returns nullptr for a column that no single command serves with.
const Server* find_server(const RuntimeColumn& column);

// The folder and the flags that a server is started with.
struct Served {
  std::string path;  // a model folder, or a scale file, for which the model is called MODEL
  bool is_file = false;
  CacheFlag flag = CacheFlag::automatic;  // from asked_cache
  std::span<const int64_t> skipped = {};  // layers to leave in 16 bit; see skippable
  bool drafter = false;                   // `path` is a drafter; the command calls its target MODEL
};

// Returns a command for a shell. REQUIRES a server that has that cache.
std::string serve_command(const Server& server, const Served& served);

}  // namespace fp8kv
