#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/isa/cpu_isa.h"
#include "backend/open/open.h"
#include "backend/open/plugin.h"
#include "base/error.h"
#include "base/machine/cpu_topology.h"
#include "base/machine/machine_memory.h"
#include "base/machine/processor_name.h"
#include "base/text.h"
#include "commands/commands.h"
#include "json/json.h"
#include "show/output.h"

namespace fp8kv {
namespace {

struct GpuState {
  std::string name;                             // "cuda"
  std::optional<std::filesystem::path> module;  // the file found
  std::string device;  // the backend's description of itself; "" if unusable
  std::vector<std::pair<std::string, std::string>> details;
  std::optional<DeviceMemory> memory;
  std::string reason;  // why it is unusable
  std::string help;
};

GpuState look_at(const std::string& name) {
  GpuState state;
  state.name = name;
  state.module = find_plugin(name);
  try {
    const std::unique_ptr<Backend> backend = load_plugin(name);
    state.device = backend->describe();
    state.details = backend->details();
    state.memory = backend->memory();
  } catch (const Error& error) {
    state.reason = error.what();
    state.help = error.help();
  }
  return state;
}

struct Findings {
  std::string processor = processor_name("/proc/cpuinfo");
  std::string isa = std::string(cpu_isa_name(chosen_cpu_isa()));
  bool isa_is_best = chosen_cpu_isa() == best_cpu_isa();
  int cores = usable_cores();
  MachineMemory memory = machine_memory();
  std::vector<GpuState> gpus;
};

Findings examine() {
  Findings found;
  for (const std::string& name : device_names()) {
    if (name != "auto" && name != "cpu") found.gpus.push_back(look_at(name));
  }
  return found;
}

// The program's instruction sets that this machine supports if `here`, else those that it does not
// support.
std::string instruction_sets(bool here) {
  std::vector<std::string> names;
  for (const CpuIsaRow& row : cpu_isas()) {
    if (is_for_users(row) && row.is_here() == here) names.emplace_back(row.name);
  }
  return join(names, ", ");
}

// The device that --device auto takes: the first of its GPUs that works, else the CPU.
std::string automatic(const Findings& found) {
  for (const std::string& name : automatic_gpus()) {
    const auto gpu = std::find_if(found.gpus.begin(), found.gpus.end(),
                                  [&](const GpuState& each) { return each.name == name; });
    if (gpu != found.gpus.end() && !gpu->device.empty()) return name;
  }
  return "cpu";
}

std::string text_of(const Findings& found) {
  const auto row = [](const std::string& name, const std::string& value) {
    return cat(name, std::string(name.size() < 10 ? 10 - name.size() : 1, ' '), value, "\n");
  };
  std::string text = row("fp8kv", FP8KV_VERSION);
  text += row("cpu", cat(plain(found.processor.empty() ? "unknown" : found.processor), ", ",
                         count_of(static_cast<uint64_t>(found.cores), "core"), ", ", found.isa,
                         found.isa_is_best ? "" : " by FP8KV_CPU"));
  const std::string lacking = instruction_sets(false);
  text += row("", cat("has ", instruction_sets(true), lacking.empty() ? "" : "; lacks ", lacking));
  for (const CpuIsaRow& each : cpu_isas()) {
    if (!each.is_here() || !is_slow_here(each)) continue;
    text += row("", cat(each.name, " is not taken: its products are slower here"));
  }
  text += row("memory", cat(human_bytes(found.memory.total_bytes), ", ",
                            human_bytes(found.memory.available_bytes), " available"));
  for (const GpuState& gpu : found.gpus) {
    if (gpu.device.empty()) {
      text += row(gpu.name, cat("no: ", gpu.reason));
      if (!gpu.help.empty()) text += row("", gpu.help);
      continue;
    }
    text += row(gpu.name, gpu.device);
    if (gpu.memory && gpu.memory->free) {
      text += row("", cat(human_bytes(*gpu.memory->free), " of its memory are free"));
    }
    for (const auto& [name, what] : gpu.details) text += row("", cat(name, ": ", what));
    text += row("", cat("from ", quote(gpu.module->string())));
  }
  return text + row("auto", cat("takes ", automatic(found)));
}

std::string json_of(const Findings& found) {
  JsonWriter json;
  json.begin_object().member("schema", "fp8kv.doctor/1").member("version", FP8KV_VERSION);
  json.key("cpu").begin_object().member("processor", plain(found.processor));
  json.member("cores", int64_t{found.cores}).member("instructions", found.isa);
  json.key("instruction_sets").begin_array();
  for (const CpuIsaRow& each : cpu_isas()) {
    if (!is_for_users(each)) continue;
    json.begin_object().member("name", each.name).member("needs", each.needs);
    json.member("here", each.is_here());
    json.member("slow", each.is_here() && is_slow_here(each)).end_object();
  }
  json.end_array().end_object();
  json.key("memory").begin_object().member("bytes", found.memory.total_bytes);
  json.member("available_bytes", found.memory.available_bytes).end_object();
  json.member("auto", automatic(found)).key("devices").begin_array();
  for (const GpuState& gpu : found.gpus) {
    json.begin_object().member("name", gpu.name).member("usable", !gpu.device.empty());
    if (gpu.module) json.member("module", utf8_name(gpu.module->string()));
    if (gpu.device.empty()) json.member("reason", gpu.reason).member("help", gpu.help);
    if (!gpu.device.empty()) json.member("device", gpu.device);
    if (gpu.memory && gpu.memory->free) json.member("free_bytes", *gpu.memory->free);
    for (const auto& [name, what] : gpu.details) json.member(name, what);
    json.end_object();
  }
  return json.end_array().end_object().text();
}

}  // namespace

void run_command(const DoctorOptions& options) {
  const Findings found = examine();
  options.json ? print(json_of(found)) : print_text(text_of(found));
}

}  // namespace fp8kv
