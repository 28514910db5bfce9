// The metadata of Parquet files. An input is the number of a golden file and a footer, which
// follows the pages of that file. The fuzzer writes the footer's length, so any change is still a
// footer.
#include "formats/parquet/parquet.h"
#include "fuzz.h"
#include "json/json.h"

namespace fp8kv::fuzz {
namespace {

constexpr uint64_t kMostRows = 200;
constexpr size_t kTail = 8;  // the footer's length and the mark
constexpr ParquetLimits kLimits{.page_bytes = 1 << 20, .row_bytes = 1 << 18, .row_values = 1 << 12};

uint32_t footer_bytes(std::string_view file) {
  uint32_t length = 0;
  for (size_t i = 4; i-- > 0;) {
    length = length << 8 | static_cast<uint8_t>(file[file.size() - kTail + i]);
  }
  return length;
}

const std::vector<std::string>& goldens() {
  static const std::vector<std::string> files =
      files_below(std::filesystem::path(FP8KV_SOURCE_DIR) / "tests/golden/parquet", ".parquet");
  return files;
}

std::string_view pages_of(std::string_view file) {
  return file.substr(0, file.size() - kTail - footer_bytes(file));
}

std::string file_of(const std::string& input) {
  const size_t golden = static_cast<uint8_t>(input[0]) % goldens().size();
  std::string file(pages_of(goldens()[golden]));
  file += std::string_view(input).substr(1);
  for (int i = 0; i < 4; ++i) file += static_cast<char>((input.size() - 1) >> (8 * i));
  return file + "PAR1";
}

void read_rows(const ParquetFile& file, uint64_t skipped) {
  ParquetRows rows(file, file.columns());
  rows.skip(skipped);
  while (rows.number() < skipped + kMostRows && rows.next()) {
    require(Json::parse(rows.json(), "row").is_object(), "a row is an object");
  }
  require(rows.number() <= file.rows(), "there are no more rows than are counted");
}

void run(const std::string& input) {
  if (input.empty()) return;
  const std::string bytes = file_of(input);
  const ParquetFile file(bytes, "file", kLimits);
  read_rows(file, input.size() % 3 == 0 ? file.rows() / 2 : 0);
}

std::vector<std::string> seeds(const std::filesystem::path&) {
  std::vector<std::string> inputs;
  for (size_t i = 0; i < goldens().size(); ++i) {
    const std::string& file = goldens()[i];
    const std::string footer =
        file.substr(file.size() - kTail - footer_bytes(file), footer_bytes(file));
    inputs.push_back(static_cast<char>(i) + footer);
  }
  return inputs;
}

}  // namespace

const Target kParquetFooter{"parquet-footer", run, nullptr, seeds};

}  // namespace fp8kv::fuzz
