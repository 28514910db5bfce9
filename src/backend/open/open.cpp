#include "backend/open/open.h"

#include <algorithm>

#include "backend/cpu/cpu_backend.h"
#include "backend/open/plugin.h"
#include "base/error.h"
#include "base/machine/cpu_topology.h"
#include "base/text.h"

namespace fp8kv {
namespace {

constexpr const char* kGpus[] = {"cuda", "hip"};
// Devices on the CPU, which "auto" never takes.
constexpr const char* kEmulators[] = {"ptx", "sim"};

// Opens the CPU, with a note if there are more threads than cores.
OpenedBackend open_cpu(int threads) {
  const int cores = usable_cores();
  const std::string beyond =
      threads <= cores ? ""
                       : cat(" (more than the ", count_of(static_cast<uint64_t>(cores), "core"),
                             " there are: they take turns)");
  return {make_cpu_backend(threads), beyond};
}

OpenedBackend open_best(int threads) {
  std::string reasons;
  for (const std::string& name : automatic_gpus()) {
    if (!find_plugin(name)) continue;
    try {
      return {load_plugin(name), ""};
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::device) throw;
      reasons += cat(reasons.empty() ? "" : "; ", error.what());
    }
  }
  if (reasons.empty()) reasons = "no module for one is installed";
  OpenedBackend cpu = open_cpu(threads);
  cpu.why += cat(" (no GPU: ", reasons, ")");
  return cpu;
}

}  // namespace

std::vector<std::string> device_names() {
  std::vector<std::string> names = {"auto", "cpu"};
  names.insert(names.end(), std::begin(kGpus), std::end(kGpus));
  for (const char* name : kEmulators) {
    if (find_plugin(name)) names.push_back(name);
  }
  return names;
}

std::vector<std::string> automatic_gpus() {
  return {std::begin(kGpus), std::end(kGpus)};
}

OpenedBackend open_backend(const std::string& device, int threads) {
  if (device == "auto") return open_best(threads);
  if (device == "cpu") return open_cpu(threads);
  const std::vector<std::string> names = device_names();
  if (std::find(names.begin(), names.end(), device) != names.end()) {
    return {load_plugin(device), ""};
  }
  throw Error(cat("unknown device ", quote(device), did_you_mean(device, names)),
              cat("use one of ", join(names, " or ")), ErrorKind::usage);
}

}  // namespace fp8kv
