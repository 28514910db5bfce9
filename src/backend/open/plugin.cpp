#include "backend/open/plugin.h"

#include <array>

#include "backend/module_version.h"
#include "base/error.h"
#include "files/module_file.h"

namespace fp8kv {

std::vector<std::filesystem::path> plugin_folders() {
  return module_folders();
}

std::optional<std::filesystem::path> find_plugin(const std::string& name) {
  return find_module(name);
}

std::unique_ptr<Backend> load_plugin(const std::string& name) {
  const std::string way_out = cat("build with -DFP8KV_GPU=", name, ", or run on the CPU");
  const auto open = reinterpret_cast<OpenPlugin>(load_module(name, kOpenPlugin, way_out));
  std::array<char, 1024> reason{};
  std::unique_ptr<Backend> backend(open(module_version(), reason.data(), reason.size()));
  if (!backend) {
    const std::string text = reason.data();
    const size_t line = text.find('\n');
    throw Error(text.substr(0, line), line == text.npos ? "" : text.substr(line + 1),
                ErrorKind::device);
  }
  return backend;
}

}  // namespace fp8kv
