// Data sets in Parquet files.
#include "formats/parquet/parquet.h"
#include "fuzz.h"
#include "json/json.h"

namespace fp8kv::fuzz {
namespace {

constexpr uint64_t kMostRows = 2000;
constexpr ParquetLimits kLimits{.page_bytes = 1 << 22, .row_bytes = 1 << 20, .row_values = 1 << 14};

void run(const std::string& input) {
  const ParquetFile file(input, "file", kLimits);
  ParquetRows rows(file, file.columns());
  while (rows.number() < kMostRows && rows.next()) {
    require(Json::parse(rows.json(), "row").is_object(), "a row is an object");
  }
  require(rows.number() <= file.rows(), "there are no more rows than are counted");
}

// Restores the marks at both ends, without which nothing is read.
void repair(std::string& input) {
  constexpr std::string_view kMark = "PAR1";
  if (input.size() < 3 * kMark.size()) return;
  input.replace(0, kMark.size(), kMark);
  input.replace(input.size() - kMark.size(), kMark.size(), kMark);
}

std::vector<std::string> seeds(const std::filesystem::path& root) {
  return files_below(root / "tests" / "golden" / "parquet", ".parquet");
}

}  // namespace

const Target kParquet{"parquet", run, repair, seeds};

}  // namespace fp8kv::fuzz
