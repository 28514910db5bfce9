#include "data/files/data_kind.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "base/text.h"
#include "unpack/packing.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

constexpr std::array<DataKindRow, 8> kKinds = {{
    {".txt", DataKind::text},
    {".json", DataKind::json},
    {".jsonl", DataKind::json_lines},
    {".ndjson", DataKind::json_lines},
    {".csv", DataKind::csv},
    {".tsv", DataKind::tsv},
    {".parquet", DataKind::parquet},
    {".arrow", DataKind::arrow},  // known only to be refused, with the way out
}};

std::string suffix_of(const fs::path& path) {
  std::string suffix = path.extension().string();
  for (char& c : suffix) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return suffix;
}

}  // namespace

std::span<const DataKindRow> data_kinds() {
  return kKinds;
}

DataKind data_kind(const fs::path& path) {
  std::string suffix = suffix_of(path);
  if (is_packed_suffix(suffix)) suffix = suffix_of(path.stem());
  const auto* const found = std::find_if(
      kKinds.begin(), kKinds.end(), [&](const DataKindRow& row) { return row.suffix == suffix; });
  return found == kKinds.end() ? DataKind::unknown : found->kind;
}

std::string data_kind_list() {
  std::vector<std::string> names;
  for (const DataKindRow& row : kKinds) {
    if (row.kind != DataKind::arrow) names.emplace_back(row.suffix);
  }
  return join(names, ", ");
}

}  // namespace fp8kv
