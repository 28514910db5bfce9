#include "backend/open/plugin.h"

#include <array>
#include <dlfcn.h>

#include "backend/open/trusted_file.h"
#include "base/error.h"

namespace fp8kv {
namespace {

std::string file_name(const std::string& name) {
  return cat("fp8kv_", name, ".so");
}

[[noreturn]] void refuse(const std::string& reason, const std::string& help = "") {
  throw Error(reason, help, ErrorKind::device);
}

}  // namespace

std::vector<std::filesystem::path> plugin_folders() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {};
  const std::filesystem::path folder = program.parent_path();
  return {folder, folder.parent_path() / "lib" / "fp8kv"};
}

std::optional<std::filesystem::path> find_plugin(const std::string& name) {
  for (const std::filesystem::path& folder : plugin_folders()) {
    std::error_code error;
    if (std::filesystem::is_regular_file(folder / file_name(name), error)) {
      return folder / file_name(name);
    }
  }
  return std::nullopt;
}

std::unique_ptr<Backend> load_plugin(const std::string& name) {
  const std::optional<std::filesystem::path> path = find_plugin(name);
  if (!path) {
    std::vector<std::string> folders;
    for (const auto& folder : plugin_folders()) folders.push_back(quote(folder.string()));
    refuse(cat(file_name(name), " is not installed in ", join(folders, " or ")),
           cat("build with -DFP8KV_GPU=", name, ", or run on the CPU"));
  }
  const std::filesystem::path real = std::filesystem::canonical(*path);
  if (const std::string why = why_not_trusted(real); !why.empty()) {
    refuse(cat(quote(path->string()), ": is not loaded, since its code may be anyone's: ", why),
           "take away the right to write there (chmod go-w), or install the program anew");
  }
  // Never closed: the backend's code is in it.
  void* module = dlopen(real.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module) refuse(cat(quote(path->string()), ": cannot be loaded: ", dlerror()));
  const auto open = reinterpret_cast<OpenPlugin>(dlsym(module, kOpenPlugin));
  if (!open) refuse(cat(quote(path->string()), ": is not a module of this program"));
  std::array<char, 1024> reason{};
  std::unique_ptr<Backend> backend(open(FP8KV_VERSION, reason.data(), reason.size()));
  if (!backend) {
    const std::string text = reason.data();
    const size_t line = text.find('\n');
    refuse(text.substr(0, line), line == text.npos ? "" : text.substr(line + 1));
  }
  return backend;
}

}  // namespace fp8kv
