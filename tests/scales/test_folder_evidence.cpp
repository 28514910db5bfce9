// The scale file that inject puts into a folder.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "scales/read/find_scales.h"
#include "scales/scale_file.h"
#include "scales/write/inject.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

struct Folder {
  explicit Folder(std::vector<std::string> how = {}) {
    const std::string demo = (test::source_dir() / "datasets/demo").string();
    const std::string text = (test::source_dir() / "datasets/calibration.txt").string();
    const auto run = [&](std::vector<std::string> arguments) {
      return test::run_cli(arguments, temp.path()).exit_code;
    };
    REQUIRE(run({"calibrate", demo, "--data", text, "--seq-len", "64", "--samples", "4", "-o",
                 "s.json", "-q"}) == 0);
    how.insert(how.begin(), {"inject", demo, "-s", "s.json", "-o", "out", "--link", "copy", "-q"});
    REQUIRE(run(how) == 0);
  }
  std::string extract() const {
    const test::CliResult result = test::run_cli({"extract", "out", "-o", "-"}, temp.path());
    CHECK(result.exit_code == 0);
    return result.out;
  }
  test::CliResult verify() const {
    return test::run_cli({"verify", "out", "--require-evidence", "-q"}, temp.path());
  }
  test::TempDir temp;
};

TEST_CASE("folder evidence: extract gives back the very file that was injected") {
  const Folder folder;
  CHECK(folder.extract() == test::read_file(folder.temp / "s.json"));
}

TEST_CASE("folder evidence: scales raised to powers of two keep their maxima") {
  const Folder folder({"--scale-rounding", "power-of-two"});
  folder.temp.write("back.json", folder.extract());
  const KvScales file = read_scale_file(folder.temp / "s.json");
  const KvScales back = read_scale_file(folder.temp / "back.json");
  CHECK(back.provenance == file.provenance);
  CHECK(back.layers[0].k[0] > file.layers[0].k[0]);
}

TEST_CASE("folder evidence: tensors that were changed are believed, and the file is left aside") {
  const Folder folder({"--for", "tgi"});
  const std::string shard = "out/model-kv-scales.safetensors";
  std::string bytes = test::read_file(folder.temp / shard);
  bytes[bytes.size() - 2] = static_cast<char>(bytes[bytes.size() - 2] ^ 0x40);  // the last V scale
  folder.temp.write(shard, bytes);
  const FoundScales found = scales_at(Checkpoint::open(folder.temp / "out"));
  CHECK(found.scales.provenance.amax.empty());
  REQUIRE(found.notes.size() == 1);
  CHECK(found.notes[0].ends_with(
      "the scale file in the metadata is not used: the folder has other scales than that file"));
}

TEST_CASE("folder evidence: verify demands it where it is asked to") {
  const Folder little;
  const test::CliResult refused = little.verify();
  CHECK(refused.exit_code == 1);
  CHECK(refused.err.find("too little text: 256 tokens; 744 more are needed") != std::string::npos);
  CHECK(test::run_cli({"verify", "out", "-q"}, little.temp.path()).exit_code == 0);
}

TEST_CASE("folder evidence: inspect makes the page of a folder") {
  const Folder folder;
  const test::CliResult result =
      test::run_cli({"inspect", "out", "--report", "page.html", "-q"}, folder.temp.path());
  CHECK(result.exit_code == 0);
  CHECK(test::read_file(folder.temp / "page.html").find("256 tokens") != std::string::npos);
}

}  // namespace
}  // namespace fp8kv
