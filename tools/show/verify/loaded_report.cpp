#include "show/verify/loaded_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "base/text.h"
#include "json/json.h"
#include "show/output.h"

namespace fp8kv {
namespace {

constexpr size_t kMostRows = 16;

std::string numbers_text(const std::vector<float>& numbers) {
  if (numbers.empty()) return "none";
  std::vector<std::string> texts;
  for (const float number : numbers) texts.push_back(significant(number, 7));
  return join(texts, ", ");
}

std::map<LoadedAs, size_t> counts_of(std::span<const ComparedScale> compared) {
  std::map<LoadedAs, size_t> counts;
  for (const ComparedScale& scale : compared) ++counts[scale.how];
  return counts;
}

// "10 equal and 2 rounded".
std::string counts_text(std::span<const ComparedScale> compared) {
  std::vector<std::string> parts;
  for (const auto& [how, count] : counts_of(compared)) {
    parts.push_back(cat(count, " ", loaded_as_name(how)));
  }
  return join(parts);
}

std::string rounding_text(std::span<const ComparedScale> compared) {
  const auto farthest = std::max_element(
      compared.begin(), compared.end(),
      [](const ComparedScale& a, const ComparedScale& b) { return a.error < b.error; });
  if (farthest == compared.end() || farthest->error == 0) return "";
  return cat("rounded   by up to ", significant(100 * farthest->error, 2), " %, in layer ",
             farthest->layer, " ", farthest->of, "\n");
}

std::string lost_rows(std::span<const ComparedScale> compared) {
  Table table({"layer", "scale", "file", "memory", "result"}, {false, true, false, false, true}, 2);
  size_t lost = 0;
  for (const ComparedScale& scale : compared) {
    if (arrived(scale.how) || ++lost > kMostRows) continue;
    table.add({cat(scale.layer), std::string(1, scale.of), numbers_text(scale.file),
               numbers_text(scale.memory), loaded_as_name(scale.how)});
  }
  if (lost == 0) return "";
  const std::string more =
      lost > kMostRows ? cat("and ", lost - kMostRows, " more: --json has all\n") : "";
  return cat("\n", table.text(), more);
}

void numbers_json(JsonWriter& json, std::string_view name, const std::vector<float>& numbers) {
  // A broken load may leave NaN or infinity, which JSON cannot write as numbers.
  const bool plain = std::all_of(numbers.begin(), numbers.end(),
                                 [](float number) { return std::isfinite(number); });
  if (plain && !numbers.empty()) {
    json.member(name, std::span<const float>(numbers));
  } else {
    json.key(name).null();
  }
}

}  // namespace

std::string loaded_text(const LoadedScales& loaded, std::span<const ComparedScale> compared) {
  const std::string loader =
      cat("runtime   ", runtime_title(loaded.runtime), " ", plain(loaded.version),
          ", its loader on the CPU, without the weights");
  std::string text = sentence(loader, 10) + "\n";
  if (!loaded.failure.empty()) return cat(text, "scales    none: loading stopped\n");
  if (loaded.turns_on) {
    const char* format = loaded.cache.find("nvfp4") == std::string::npos ? "FP8" : "NVFP4";
    text += *loaded.turns_on ? cat("cache     ", format, " without being asked\n")
                             : "cache     FP8 when asked: --kv-cache-dtype fp8\n";
  }
  const auto arrive = std::count_if(compared.begin(), compared.end(),
                                    [](const ComparedScale& each) { return arrived(each.how); });
  const std::string counts =
      cat("scales    ", arrive, " of ", compared.size(), " arrive: ", counts_text(compared));
  return cat(text, sentence(counts, 10), "\n", rounding_text(compared), lost_rows(compared));
}

std::string loaded_json(const VerifyOptions& options, const LoadedScales& loaded,
                        std::span<const ComparedScale> compared) {
  JsonWriter json;
  json.begin_object().member("schema", "fp8kv.verify-with/1");
  json.member("path", utf8_name(options.path.string()));
  json.member("runtime", loaded.runtime).member("version", loaded.version);
  json.member("python", loaded.python_version);
  json.key("turns_on");
  loaded.turns_on ? json.value(*loaded.turns_on) : json.null();
  json.key("failure");
  loaded.failure.empty() ? json.null() : json.value(loaded.failure);
  const bool all = loaded.failure.empty() &&
                   std::all_of(compared.begin(), compared.end(),
                               [](const ComparedScale& each) { return arrived(each.how); });
  json.member("arrives", all).key("counts").begin_object();
  if (loaded.failure.empty()) {
    for (const auto& [how, count] : counts_of(compared)) {
      json.member(loaded_as_name(how), uint64_t{count});
    }
  }
  json.end_object().key("scales").begin_array();
  for (const ComparedScale& scale : compared) {
    if (!loaded.failure.empty()) break;
    json.begin_object().member("layer", scale.layer).member("of", std::string(1, scale.of));
    numbers_json(json, "file", scale.file);
    numbers_json(json, "memory", scale.memory);
    json.member("result", loaded_as_name(scale.how));
    if (scale.how == LoadedAs::rounded) json.member("error", scale.error);
    json.end_object();
  }
  return json.end_array().end_object().text();
}

}  // namespace fp8kv
