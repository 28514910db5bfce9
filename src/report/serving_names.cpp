#include "report/serving_names.h"

#include "base/shell.h"

namespace fp8kv {

std::string model_name(const std::filesystem::path& model) {
  const std::filesystem::path folder = model.has_filename() ? model : model.parent_path();
  const std::string name = folder.filename().string();
  if (name == "." || name == "..") return "";
  if (folder.parent_path().filename() != "snapshots") return name;
  const std::string cached = folder.parent_path().parent_path().filename().string();
  const size_t dashes = cached.rfind("--");
  return dashes == cached.npos ? name : cached.substr(dashes + 2);
}

ServingNames serving_names(const std::filesystem::path& scales, const std::filesystem::path& model,
                           KvFormat format) {
  const std::string suffix = is_nvfp4(format) ? "-nvfp4" : "-fp8";
  ServingNames names;
  names.scales = shell_path(scales.string());
  names.copy = names.model + suffix;
  if (model.empty()) return names;
  names.model = shell_path(model.string());
  const std::string name = model_name(model);
  if (!name.empty()) names.copy = shell_path(name + suffix);
  return names;
}

}  // namespace fp8kv
