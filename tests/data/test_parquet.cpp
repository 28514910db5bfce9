#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "formats/parquet/parquet.h"
#include "records_of.h"
#include "support/places.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

fs::path goldens() {
  return test::source_dir() / "tests/golden/parquet";
}

std::string golden(const std::string& name) {
  return test::read_file(goldens() / name);
}

// The error for a file with these bytes, with its help.
std::string refused(const std::string& bytes, const std::string& column = "") {
  const test::TempDir folder;
  const fs::path file = folder.write("x.parquet", bytes);
  try {
    test::records_of(file, column);
  } catch (const Error& error) {
    std::string message = cat(error.what(), "; ", error.help());
    const std::string path = quote(file.string());
    message.replace(message.find(path), path.size(), "FILE");
    return message;
  }
  FAIL_CHECK("nothing was thrown");
  return "";
}

}  // namespace

TEST_CASE("parquet: every writer's files have the records that pyarrow reads") {
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(goldens())) {
    if (entry.path().extension() != ".parquet") continue;
    const std::string kind = entry.path().stem().extension().string().substr(1);
    CAPTURE(entry.path().filename().string());
    // If a file has other columns too, the reader chooses the column that makes a record.
    const auto expected = kind == "zero" ? std::vector<std::string>()
                                         : test::records_of(goldens() / (kind + ".jsonl"));
    CHECK(test::records_of(entry.path()) == expected);
    ++files;
  }
  CHECK(files == 23);
}

TEST_CASE("parquet: reading stops where no more records are wanted") {
  CHECK(test::records_of(goldens() / "arrow-none.text.parquet", "", 3) ==
        test::records_of(goldens() / "text.jsonl", "", 3));
}

TEST_CASE("parquet: any column of text can be named") {
  CHECK(test::records_of(goldens() / "refused/columns.parquet", "body") ==
        std::vector<std::string>{R"({"text": "one"})"});
  CHECK(refused(golden("refused/columns.parquet"), "bodi") ==
        "FILE: has no column 'bodi', has 'body' and 'id' (did you mean 'body'?); name one of these "
        "with --column");
  CHECK(refused(golden("refused/columns.parquet")) ==
        "FILE: a record without a known field: has 'body' and 'id', expected input_ids, text, "
        "article, messages, conversations, prompt+completion, instruction+[input]+output, "
        "question+answer or turns; name the field that holds the text with --column");
}

TEST_CASE("parquet: what is not read is refused by its name, with the way out") {
  CHECK(refused(golden("refused/brotli.parquet")) ==
        "FILE: row 1: column 'text': is compressed by BROTLI, expected SNAPPY, GZIP, ZSTD or "
        "UNCOMPRESSED; write it with one of these");
  CHECK(refused(golden("refused/lz4.parquet")) ==
        "FILE: row 1: column 'text': is compressed by LZ4_RAW, expected SNAPPY, GZIP, ZSTD or "
        "UNCOMPRESSED; write it with one of these");
  CHECK(refused(golden("refused/decimal.parquet")) ==
        "FILE: row 1: column 'text': is neither text nor a plain number; convert it to text, or "
        "name another column");
  CHECK(refused(golden("refused/binary.parquet")) ==
        "FILE: row 1: column 'text': is not valid UTF-8 at its byte 0; name a column of text");
  CHECK(refused("PAR1" + std::string(20, 'x') + "PARE") ==
        "FILE: is an encrypted Parquet file; write it without encryption");
  CHECK(refused("{\"text\": \"one\"}") ==
        "FILE: is no Parquet file, which begins with PAR1; fetch or write it again, or give it the "
        "suffix of what it is");
}

TEST_CASE("parquet: rows behind groups without rows are found when rows are skipped") {
  const std::string bytes = golden("arrow-zero-groups.text.parquet");
  for (const uint64_t skipped : {0, 1, 12, 13, 14, 39, 40}) {
    const ParquetFile file(bytes, "file");
    ParquetRows rows(file, file.columns());
    rows.skip(skipped);
    CHECK(rows.number() == skipped);
    CHECK(rows.next() == (skipped < 40));
  }
}

TEST_CASE("parquet: a file that is cut short or damaged is an error, with the row where it is so") {
  const std::string whole = golden("arrow-none.text.parquet");
  CHECK(refused(whole.substr(0, whole.size() - 1)) ==
        "FILE: does not end as a Parquet file does: it is cut short; fetch or write it again");
  CHECK(refused("PAR1") ==
        "FILE: does not end as a Parquet file does: it is cut short; fetch or write it again");
  // The pages of this file have checksums. The first page has the first rows.
  std::string damaged = whole;
  const size_t text = damaged.find("shared 3 beginning");
  REQUIRE(text != damaged.npos);
  damaged[text + 3] ^= 1;
  const std::string message = refused(damaged);
  CAPTURE(message);
  CHECK(message.find("column 'text': has a damaged page: its checksum is wrong; ") !=
        std::string::npos);
  size_t row = 0;
  REQUIRE(std::sscanf(message.c_str(), "FILE: row %zu:", &row) == 1);
  CHECK(row >= 1);
  CHECK(row <= 28);
}

TEST_CASE("parquet: no cut and no changed byte is read beyond the file") {
  for (const char* name :
       {"arrow-chat-snappy.messages.parquet", "arrow-delta-byte-array.text.parquet",
        "duckdb-chat-v2.messages.parquet"}) {
    const std::string whole = golden(name);
    const test::TempDir folder;
    const auto read = [&](const std::string& bytes) {
      try {
        test::records_of(folder.write("x.parquet", bytes));
      } catch (const Error& error) {
        CHECK(std::string(error.what()) != "");
      }
    };
    for (size_t i = 0; i < whole.size(); i += 7) {
      std::string changed = whole;
      changed[i] ^= static_cast<char>(1 << i % 8);
      read(changed);
      read(whole.substr(0, i) + whole.substr(whole.size() - whole.size() / 3));
    }
  }
}

}  // namespace fp8kv
