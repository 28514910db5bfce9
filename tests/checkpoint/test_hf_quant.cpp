#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/hf_quant.h"
#include "support/expect_error.h"
#include "support/models/tiny_checkpoint.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

TEST_CASE("hf_quant: the file is read where it is there, up to 16 MiB") {
  const test::TempDir folder;
  CHECK_FALSE(read_hf_quant(folder.path()));
  const auto path = folder.write(kModelOptFile, R"({"quantization": {"quant_algo": "FP8"}})");
  CHECK(read_hf_quant(folder.path())->at("quantization").at("quant_algo").as_string() == "FP8");
  folder.write("hf_quant_config.json", "[1]");
  CHECK(test::error_of([&] {
          read_hf_quant(folder.path());
        }).ends_with("hf_quant_config.json': is [1], expected an object"));
  std::filesystem::resize_file(path, (size_t{16} << 20) + 1);
  CHECK(test::error_of([&] { read_hf_quant(folder.path()); }) ==
        cat(quote(path.string()), ": longer than the 16.0 MiB that are accepted here"));
}

TEST_CASE("hf_quant: a checkpoint reads the file once, for its copies too") {
  const test::TempDir folder;
  test::write_tiny_checkpoint(folder.path(), test::tiny_config());
  folder.write(kModelOptFile, R"({"quantization": {"quant_algo": "FP8"}})");
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  const Checkpoint copy = checkpoint;
  CHECK(checkpoint.hf_quant()->at("quantization").at("quant_algo").as_string() == "FP8");
  folder.write(kModelOptFile, "[1]");
  CHECK(checkpoint.hf_quant()->at("quantization").at("quant_algo").as_string() == "FP8");
  CHECK(copy.hf_quant()->at("quantization").at("quant_algo").as_string() == "FP8");
}

TEST_CASE("hf_quant: a file that is no object is an error at each call") {
  const test::TempDir folder;
  test::write_tiny_checkpoint(folder.path(), test::tiny_config());
  const auto path = folder.write(kModelOptFile, "[1]");
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  for (int i = 0; i < 2; ++i) {
    CHECK(test::error_of([&] { checkpoint.hf_quant(); }) ==
          cat(quote(path.string()), ": is [1], expected an object"));
  }
}

}  // namespace
}  // namespace fp8kv
