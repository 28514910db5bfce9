// A folder with a model and its scales, where tests run `verify`.
#pragma once

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/models/tiny_checkpoint.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv::test {

// A tiny F16 model of two layers. F16 cannot represent its scales.
struct VerifyPlace {
  VerifyPlace() {
    TinyConfig config = tiny_config();
    config.dtype = DType::f16;
    write_tiny_checkpoint(temp / "model", config);
    temp.write("scales.json", R"({"model_type": "llama", "kv_cache": {"dtype": "float8_e4m3fn",
      "scaling_factor": {"0": {"0": 0.3, "1": 0.001}}}})");
  }
  CliResult run(const std::vector<std::string>& arguments) const {
    return run_cli(arguments, {.folder = temp.path()});
  }
  // Makes a folder with those scales.
  void inject(const std::string& out, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"inject", "model", "-s", "scales.json", "-o", out};
    arguments.insert(arguments.end(), more.begin(), more.end());
    REQUIRE(run(arguments).exit_code == 0);
  }

  TempDir temp;
};

}  // namespace fp8kv::test
