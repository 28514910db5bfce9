#include "chat/template_files.h"

#include <algorithm>

#include "base/error.h"
#include "files/file.h"
#include "json/object_file.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kMostBytes = uint64_t{16} << 20;

NamedTemplate from_file(const fs::path& folder, const fs::path& path, const std::string& name) {
  return {name, read_regular_text(path, kMostBytes), quote(path.string()),
          utf8_name(path.lexically_relative(folder).string())};
}

std::vector<NamedTemplate> from_files(const fs::path& folder) {
  std::vector<NamedTemplate> found;
  const fs::path others = folder / "additional_chat_templates";
  if (fs::is_directory(others)) {
    for (const auto& entry : fs::directory_iterator(others)) {
      if (entry.path().extension() != ".jinja") continue;
      found.push_back(from_file(folder, entry.path(), entry.path().stem().string()));
    }
  }
  const fs::path main = folder / "chat_template.jinja";
  if (fs::exists(main)) {
    std::erase_if(found, [](const NamedTemplate& each) { return each.name == "default"; });
    found.push_back(from_file(folder, main, "default"));
  }
  return found;
}

// The value of "chat_template": a text, or a list of {"name", "template"}.
std::vector<NamedTemplate> from_json(const fs::path& path) {
  const auto json = find_object(path);
  const auto value = json ? json->find("chat_template") : std::nullopt;
  if (!value) return {};
  const std::string file = path.filename().string();
  if (!value->is_array()) {
    constexpr const char* kKey = " (chat_template)";
    return {{"default", value->as_string(), quote(path.string()) + kKey, file + kKey}};
  }
  std::vector<NamedTemplate> found;
  for (size_t i = 0; i < value->size(); ++i) {
    const Json each = (*value)[i];
    const std::string name = each.at("name").as_string();
    found.push_back({name, each.at("template").as_string(),
                     cat(quote(path.string()), " (chat_template ", quote(name), ")"),
                     cat(file, " (chat_template ", quote(name), ")")});
  }
  return found;
}

}  // namespace

std::vector<NamedTemplate> chat_templates_in(const fs::path& folder) {
  std::vector<NamedTemplate> found = from_files(folder);
  if (found.empty()) found = from_json(folder / "tokenizer_config.json");
  if (found.empty()) found = from_json(folder / "chat_template.json");
  std::sort(found.begin(), found.end(),
            [](const NamedTemplate& a, const NamedTemplate& b) { return a.name < b.name; });
  return found;
}

}  // namespace fp8kv
