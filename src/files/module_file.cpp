#include "files/module_file.h"

#include <dlfcn.h>

#include "base/error.h"
#include "files/trusted_file.h"

namespace fp8kv {
namespace {

[[noreturn]] void refuse_module(const std::string& reason, const std::string& help = "") {
  throw Error(reason, help, ErrorKind::device);
}

}  // namespace

std::string module_file_name(const std::string& name) {
  return cat("fp8kv_", name, ".so");
}

std::vector<std::filesystem::path> module_folders() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {};
  const std::filesystem::path folder = program.parent_path();
  return {folder, folder.parent_path() / "lib" / "fp8kv"};
}

std::optional<std::filesystem::path> find_module(const std::string& name) {
  for (const std::filesystem::path& folder : module_folders()) {
    std::error_code error;
    if (std::filesystem::is_regular_file(folder / module_file_name(name), error)) {
      return folder / module_file_name(name);
    }
  }
  return std::nullopt;
}

void* load_module(const std::string& name, const char* entry, const std::string& way_out) {
  const std::optional<std::filesystem::path> path = find_module(name);
  if (!path) {
    std::vector<std::string> folders;
    for (const auto& folder : module_folders()) folders.push_back(quote(folder.string()));
    refuse_module(cat(module_file_name(name), " is not installed in ", join(folders, " or ")),
                  way_out);
  }
  const std::filesystem::path real = std::filesystem::canonical(*path);
  if (const std::string why = why_not_trusted(real); !why.empty()) {
    refuse_module(
        cat(quote(path->string()), ": is not loaded, since its code may be anyone's: ", why),
        "take away the right to write there (chmod go-w), or install the program anew");
  }
  // Never closed, since its code is in use until the program ends.
  void* module = dlopen(real.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module) refuse_module(cat(quote(path->string()), ": cannot be loaded: ", dlerror()));
  void* address = dlsym(module, entry);
  if (!address) refuse_module(cat(quote(path->string()), ": is not a module of this program"));
  return address;
}

}  // namespace fp8kv
