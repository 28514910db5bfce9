#include "show/made_files.h"

#include <map>
#include <vector>

#include "base/text.h"
#include "scales/write/output_folder.h"
#include "show/output.h"

namespace fp8kv {

std::string made_files_line(std::span<const InjectedFile> files) {
  constexpr size_t kMostNames = 4;
  std::vector<std::string> written;
  std::map<FileMade, uint64_t> others;
  for (const InjectedFile& file : files) {
    if (file.made == FileMade::written) {
      written.push_back(plain(file.name));
    } else {
      ++others[file.made];
    }
  }
  std::vector<std::string> counts;
  for (const auto& [made, count] : others) {
    counts.push_back(
        cat(counts.empty() ? count_of(count, "file") : cat(count), " ", made_name(made)));
  }
  const std::string names =
      written.size() <= kMostNames ? join(written) : count_of(written.size(), "file");
  return noted("files", cat(names, " written", counts.empty() ? "" : "; ", join(counts)));
}

std::string made_files_table(std::span<const InjectedFile> files) {
  Table table({"file", "bytes", "how"}, {true, false, true});
  for (const InjectedFile& file : files) {
    table.add({plain(file.name), grouped(file.bytes), made_name(file.made)});
  }
  return table.text();
}

void made_files_json(JsonWriter& json, std::span<const InjectedFile> files) {
  json.key("files").begin_array();
  for (const InjectedFile& file : files) {
    json.begin_object().member("name", utf8_name(file.name));
    json.member("how", made_name(file.made)).member("bytes", file.bytes).end_object();
  }
  json.end_array();
}

}  // namespace fp8kv
