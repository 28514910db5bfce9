// A folder with the random model of a golden ("m"), and windows of tokens ("d.jsonl").
#pragma once

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "json/json.h"
#include "support/models/family_model.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv::test {

struct RandomPlace {
  explicit RandomPlace(const std::string& golden) : model(golden) {
    std::filesystem::create_directory_symlink(model.checkpoint.folder(), folder / "m");
    std::string text;
    for (int line = 0; line < 4; ++line) {
      std::string ids;
      for (int i = 0; i < 60; ++i) ids += cat(i == 0 ? "" : ", ", 3 + (line + i) * 31 % 74);
      text += "{\"input_ids\": [" + ids + "]}\n";
    }
    folder.write("d.jsonl", text);
  }

  CliResult run(const std::vector<std::string>& arguments) const {
    return run_cli(arguments, folder.path());
  }

  // The ids that `run` continues prompt `number` of a file with.
  std::string continued(const char* prompts, const char* threads, size_t number) const {
    const CliResult result =
        run({"run", "m", "--prompts", prompts, "-n", "20", "--threads", threads, "--json", "-q"});
    CAPTURE(result.err);
    CHECK(result.exit_code == 0);
    std::istringstream lines(result.out);
    std::string line;
    for (size_t i = 0; i <= number; ++i) std::getline(lines, line);
    JsonWriter found;
    found.value(Json::parse(line, "stdout").at("ids"));
    return found.text();
  }

  // Checks that a text is continued the same alone, beside others, and with any number of threads.
  void check_same_everywhere() const {
    const std::string prompt = "{\"input_ids\": [3, 40, 9, 46, 12, 5, 70]}\n";
    folder.write("one.jsonl", prompt);
    folder.write("two.jsonl", "{\"input_ids\": [8, 9]}\n" + prompt);
    const std::string alone = continued("one.jsonl", "2", 0);
    CHECK(continued("one.jsonl", "1", 0) == alone);
    CHECK(continued("two.jsonl", "2", 1) == alone);
  }

  FamilyModel model;
  TempDir folder;
};

}  // namespace fp8kv::test
