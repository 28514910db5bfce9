#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <zlib.h>

#include "base/text.h"
#include "support/models/tiny_checkpoint.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

std::string gzip(const std::string& text) {
  std::string out(text.size() + 100, '\0');
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// A tiny model with the tokenizer of the demo model.
struct Place {
  Place() {
    fs::create_directories(temp / "model");
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
      fs::copy(test::source_dir() / "datasets/demo" / name, temp / "model" / name);
    }
    temp.write("d/1.csv", "id,body\n1,\"A cow,\nor two?\"\n2,A goat.\n");
    temp.write("d/2.jsonl.gz", gzip("{\"body\": \"A hen?\"}\n"));
    temp.write("d/README.md", "# About\n");
  }
  test::CliResult run(const std::vector<std::string>& arguments,
                      const std::string& input = "") const {
    return test::run_cli(arguments, {.folder = temp.path(), .input = input});
  }

  test::TempDir temp;
};

// Records that each make a single window.
std::string id_records(int count) {
  std::string records;
  for (int i = 0; i < count; ++i) {
    records += cat("{\"input_ids\": [", i % 50, ", ", i * 7 % 60, ", 3, 9]}\n");
  }
  return records;
}

}  // namespace

TEST_CASE("cli data: --shuffle holds over shards, and shards of other seeds are not merged") {
  const test::TempDir temp;
  test::write_tiny_checkpoint(temp / "model", test::tiny_config());
  temp.write("a.jsonl", id_records(200));
  const auto calibrate = [&](const std::string& seed, const std::string& shard,
                             const std::string& out) {
    std::vector<std::string> arguments = {"calibrate", "model", "--data",    "a.jsonl",
                                          "--samples", "20",    "--shuffle", seed,
                                          "-o",        out,     "--device",  "cpu"};
    if (!shard.empty()) arguments.insert(arguments.end(), {"--shard", shard});
    const test::CliResult result = test::run_cli(arguments, {.folder = temp.path()});
    CAPTURE(result.err);
    CHECK(result.exit_code == 0);
    return result.err;
  };
  const std::string said = calibrate("7", "", "whole.json");
  CHECK(said.find("shuffled by 7: took 20 of 200 windows, 80 tokens\n") != std::string::npos);
  calibrate("7", "0/2", "0.json");
  calibrate("7", "1/2", "1.json");
  calibrate("8", "1/2", "other.json");
  CHECK(test::run_cli({"merge", "0.json", "1.json", "-o", "merged.json"}, temp.path()).exit_code ==
        0);
  CHECK(test::read_file(temp / "merged.json") == test::read_file(temp / "whole.json"));
  const test::CliResult refused =
      test::run_cli({"merge", "0.json", "other.json", "-o", "no.json"}, temp.path());
  CHECK(refused.exit_code == 3);
  CHECK(refused.err ==
        "fp8kv: merge: 'other.json': is a shard of other data than '0.json'\n"
        "help: shards must be made with the same data and the same options\n");
}

TEST_CASE("cli data: a folder of files of several kinds, of which a column is taken") {
  const Place in;
  const test::CliResult result =
      in.run({"tokenize", "model", "d", "--column", "body", "--records", "3"});
  CHECK(result.err == "'d': 2 files of data, and 1 that are not\n");
  CHECK(result.exit_code == 0);
  CHECK(result.out ==
        R"('d/1.csv': record 1, line 2: text, 8 tokens, 1 window
A cow,
or two?
       0  0 <|begin_of_text|>  34 A  993 Ġcow  13 ,  200 Ċ  300 or  587 Ġtwo  32 ?

'd/1.csv': record 2, line 4: text, 4 tokens, 1 window
A goat.
       0  0 <|begin_of_text|>  34 A  1016 Ġgoat  15 .

'd/2.jsonl.gz':1: text, 4 tokens, 1 window
A hen?
       0  0 <|begin_of_text|>  34 A  1094 Ġhen  32 ?
)");
}

TEST_CASE("cli data: packed data on standard input is unpacked") {
  const Place in;
  const test::CliResult packed = in.run({"tokenize", "model", "--json"}, gzip("A cow?"));
  CHECK(packed.exit_code == 0);
  CHECK(packed.out == in.run({"tokenize", "model", "--json"}, "A cow?").out);
}

TEST_CASE("cli data: what cannot be used is refused with the way out") {
  const Place in;
  in.temp.write("x.arrow", "\xFF\xFF\xFF\xFF and so on");
  const auto refused = [&](const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {"tokenize", "model"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const test::CliResult result = in.run(all);
    CHECK(result.exit_code == 3);
    return result.err;
  };
  CHECK(refused({"x.arrow"}) ==
        "fp8kv: tokenize: 'x.arrow': is Arrow data, expected text, JSON, CSV or Parquet\n"
        "help: convert it: python3 -c \"import pyarrow as a, pyarrow.parquet as p; "
        "p.write_table(a.ipc.open_stream('x.arrow').read_all(), 'x.parquet')\"\n");
  CHECK(refused({"d/1.csv", "--column", "text"}) ==
        "fp8kv: tokenize: 'd/1.csv': record 1, line 2: has no column 'text', has 'id' and 'body'\n"
        "help: name one of these with --column\n");
  CHECK(refused({"d/*.txt"}) ==
        "fp8kv: tokenize: 'd/*.txt': no file fits this pattern\nhelp: check the path\n");
}

TEST_CASE("cli data: a Parquet file without rows is passed over, and alone has no text") {
  const Place in;
  test::write_tiny_checkpoint(in.temp / "model", test::tiny_config());
  const fs::path goldens = test::source_dir() / "tests/golden/parquet";
  fs::create_directories(in.temp / "rows");
  fs::copy(goldens / "arrow-zero.zero.parquet", in.temp / "rows/1.parquet");
  fs::copy(goldens / "arrow-none.text.parquet", in.temp / "rows/2.parquet");
  const test::CliResult both = in.run({"tokenize", "model", "rows", "--json", "-q"});
  CAPTURE(both.err);
  CHECK(both.exit_code == 0);
  CHECK(std::count(both.out.begin(), both.out.end(), '\n') == 40);
  const test::CliResult alone =
      in.run({"calibrate", "model", "--data", "rows/1.parquet", "-o", "s.json", "-q"});
  CHECK(alone.exit_code == 3);
  CHECK(alone.err.find("'rows/1.parquet'") != std::string::npos);
}

}  // namespace fp8kv
