#include "scales/rules/serving.h"

#include <string_view>

#include "base/shell.h"
#include "base/text.h"

namespace fp8kv {
namespace {

using enum RuntimeOutcome;

constexpr const char* kLauncher = "text-generation-launcher --model-id ";

constexpr Server kServers[] = {
    {"vLLM", "", "vllm serve ",
     R"(vllm serve MODEL --speculative-config.method eagle3 --speculative-config.model )",
     " --speculative-config.num_speculative_tokens 3", "", "fp8", "nvfp4", fails,
     "takes no fp8_e5m2 for a model whose config has KV scales: ValueError"},
    {"SGLang", "", "python3 -m sglang.launch_server --model-path ",
     "python3 -m sglang.launch_server --model-path MODEL --speculative-algorithm EAGLE3 "
     "--speculative-draft-model-path ",
     "", "--quantization-param-path ", "fp8_e4m3", "", unknown,
     "what it does with these scales in an E5M2 cache was not looked at"},
    {"TGI", "", kLauncher, "", "", "", "fp8_e4m3fn", "", ignores,
     "uses scales in an E4M3 cache alone: fp8_e5m2 runs with 1"},
    {"TGI", "pr-2028", kLauncher, "", "", "", "fp8", "", fails,
     "takes no fp8_e5m2 for a model with kv_scale"},
};

constexpr Gpu kGpus[] = {
    {"h100", false}, {"h200", false}, {"b200", false},  {"l4", false},    {"l40s", false},
    {"mi300", true}, {"mi325", true}, {"mi350", false}, {"mi355", false},
};

}  // namespace

std::span<const Gpu> known_gpus() {
  return kGpus;
}

const Server* find_server(const RuntimeColumn& column) {
  for (const Server& server : kServers) {
    if (std::string_view(server.runtime) == column.runtime &&
        std::string_view(server.key) == column.key) {
      return &server;
    }
  }
  return nullptr;
}

CacheFlag asked_cache(CacheFlag flag, FactSet facts) {
  if (flag != CacheFlag::of_scales) return flag;
  return facts.has(Fact::nvfp4_scheme) ? CacheFlag::nvfp4 : CacheFlag::fp8;
}

std::string serve_command(const Server& server, const Served& served) {
  const std::string path = shell_path(served.path);
  std::string command = served.drafter ? server.before_drafter : server.before;
  command += served.is_file ? cat("MODEL ", server.file_flag, path) : path;
  if (served.drafter) command += server.after_drafter;
  if (served.flag != CacheFlag::automatic) {
    const char* dtype = served.flag == CacheFlag::e5m2    ? "fp8_e5m2"
                        : served.flag == CacheFlag::nvfp4 ? server.nvfp4
                                                          : server.e4m3;
    command += cat(" --kv-cache-dtype ", dtype);
  }
  if (!served.skipped.empty()) command += " --kv-cache-dtype-skip-layers";
  for (const int64_t layer : served.skipped) command += cat(" ", layer);
  return command;
}

}  // namespace fp8kv
