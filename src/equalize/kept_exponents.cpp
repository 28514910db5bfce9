#include "equalize/kept_exponents.h"

#include <vector>

#include "base/error.h"
#include "files/output/write_file.h"
#include "json/json.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

std::string name_of(size_t layer) {
  return cat("layer-", layer, ".json");
}

// Reads [units][groups]. Returns nothing if an exponent is not allowed, or too many or few are
// there.
std::optional<LayerExponents> read_exponents(const fs::path& path,
                                             const AllowedExponents& allowed) {
  const Json units = Json::read(path);
  if (!units.is_array() || units.size() != allowed.size()) return std::nullopt;
  LayerExponents exponents(allowed.size());
  for (size_t unit = 0; unit < allowed.size(); ++unit) {
    const Json groups = units[unit];
    if (!groups.is_array() || groups.size() != allowed[unit].size()) return std::nullopt;
    for (size_t g = 0; g < groups.size(); ++g) {
      const auto exponent = static_cast<int>(groups[g].as_int());
      if (!allowed[unit][g].has(exponent)) return std::nullopt;
      exponents[unit].push_back(exponent);
    }
  }
  return exponents;
}

}  // namespace

std::optional<LayerExponents> KeptExponents::find(size_t layer,
                                                  const AllowedExponents& allowed) const {
  const std::string name = name_of(layer);
  const fs::path path = files_.path() / name;
  if (!fs::exists(path)) return std::nullopt;
  if (files_.has(name, fs::file_size(path)) == Kept::whole) {
    if (auto found = read_exponents(path, allowed)) return found;
  }
  log_.warn(cat(quote(path.string()),
                ": changed since it was finished: the exponents of this layer are searched again"));
  return std::nullopt;
}

void KeptExponents::keep(size_t layer, const LayerExponents& exponents) const {
  JsonWriter json;
  json.begin_array();
  for (const Exponents& unit : exponents) {
    json.begin_array();
    for (const int exponent : unit) json.value(exponent);
    json.end_array();
  }
  write_new_file(files_.unfinished(name_of(layer)), json.end_array().text());
  files_.finish(name_of(layer));
}

void KeptExponents::remove(size_t n_layers) const {
  std::vector<std::string> names;
  for (size_t layer = 0; layer < n_layers; ++layer) names.push_back(name_of(layer));
  files_.remove(names);
}

}  // namespace fp8kv
