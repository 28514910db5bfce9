// How people serve a folder with each runtime: a table, one row each. What a runtime does with the
// folder's scales is in runtime_rules.h.
#pragma once

#include <span>
#include <string>

#include "scales/rules/runtime_rules.h"

namespace fp8kv {

// Which cache is asked for.
enum class CacheFlag {
  of_scales,  // the one that the scales are for, as the runtime calls it
  fp8,        // E4M3
  nvfp4,
  e5m2,        // that other FP8
  own_scales,  // one that makes its scales itself: int8_per_token_head, turboquant_k8v4
  automatic,   // what the runtime takes by itself
};

// The cache that `flag` stands for, in a folder with these facts.
CacheFlag asked_cache(CacheFlag flag, FactSet facts);

struct Server {
  const char* runtime;  // as a column has it, like the key
  const char* key;
  const char* before;      // what stands before the folder: "vllm serve "
  const char* file_flag;   // behind the model, before a scale file; "" where it takes none
  const char* e4m3;        // for --kv-cache-dtype
  const char* nvfp4;       // the same; "" where it has no such cache
  RuntimeOutcome of_e5m2;  // what becomes of the scales in an E5M2 cache
  const char* e5m2_sentence;
};

struct Gpu {
  const char* name;  // "mi300"
  bool fnuz;         // its E4M3 is FNUZ, for which scales must be doubled
};
std::span<const Gpu> known_gpus();

// nullptr for what nobody serves with by one command.
const Server* find_server(const RuntimeColumn& column);

// For a shell. `path` is a model folder, or a scale file where `is_file`: the model is then MODEL.
// REQUIRES a flag that asked_cache gave, and a server that has that cache.
std::string serve_command(const Server& server, const std::string& path, CacheFlag flag,
                          bool is_file = false);

}  // namespace fp8kv
