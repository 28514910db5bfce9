// Unknown keys of config.json are noted, recorded, shown, and refused with --strict.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "json/json.h"
#include "support/models/tiny_checkpoint.h"
#include "support/program/run_cli.h"
#include "support/says.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

using Strings = std::vector<std::string>;

const std::string kFound = "'model/config.json': the key 'frobnicate' is not known here";
const std::string kWarning =
    "warning: " + kFound + ": if it changes what the model computes, that is not done\n";

struct Shell {
  Shell() {
    test::write_tiny_checkpoint(temp / "model", test::tiny_config());
    temp.write("ids.jsonl", "{\"input_ids\": [1, 5, 9, 33]}\n");
    set_in("model/config.json", "frobnicate", "0.5");
  }
  test::CliResult run(const Strings& arguments) const {
    return test::run_cli(arguments, {.folder = temp.path()});
  }
  void set_in(const char* name, const char* key, const std::string& value) const {
    temp.write(name, json_with_member(test::read_file(temp / name), key, value));
  }
  test::TempDir temp;
};

using test::says;

const std::vector<Strings> kUsers = {
    {"calibrate", "model", "--data", "ids.jsonl", "-o", "other.json", "--device", "cpu"},
    {"run", "model", "--prompts", "ids.jsonl", "-n", "1", "--device", "cpu", "--json"},
    {"eval", "model", "--data", "ids.jsonl", "--device", "cpu", "--json", "--greedy-tokens", "0"}};

}  // namespace

TEST_CASE("cli known keys: one that nobody knows is a warning, and with --strict an error") {
  const Shell shell;
  for (Strings arguments : kUsers) {
    CAPTURE(arguments[0]);
    const test::CliResult loose = shell.run(arguments);
    CHECK(loose.exit_code == 0);
    CHECK(says(loose.err, kWarning));
    std::filesystem::remove(shell.temp / "other.json");
    arguments.emplace_back("--strict");
    const test::CliResult strict = shell.run(arguments);
    CHECK(strict.exit_code == 3);
    CHECK(strict.out.empty());
    CHECK(says(strict.err, ": " + kFound +
                               "\nhelp: take out what changes nothing in the "
                               "model; without --strict it is a warning\n"));
    CHECK_FALSE(std::filesystem::exists(shell.temp / "other.json"));
  }
}

TEST_CASE("cli known keys: they are recorded in what is made, and inspect shows them") {
  const Shell shell;
  CHECK(shell.run({"calibrate", "model", "--data", "ids.jsonl", "-o", "s.json"}).exit_code == 0);
  const Json file = Json::read(shell.temp / "s.json");
  CHECK(file.at("fp8kv").at("model").at("unknown_config_keys").brief() == "[\"frobnicate\"]");
  for (const char* what : {"s.json", "model"}) {
    CAPTURE(what);
    CHECK(says(shell.run({"inspect", what}).out,
               "not known         in config.json: frobnicate; if it changes what the model "
               "computes, that is not done\n"));
    CHECK(says(shell.run({"inspect", what, "--json"}).out,
               "\"unknown_config_keys\": [\n    \"frobnicate\"\n  ]"));
  }
  const test::CliResult eval = shell.run(kUsers[2]);
  CHECK(says(eval.out, "\"unknown_config_keys\": [\n    \"frobnicate\"\n  ]"));
}

// An unknown key does not change the model's identity, so scales made without it still fit.
TEST_CASE("cli known keys: extract and inject take such a model without a word") {
  const Shell shell;
  CHECK(shell.run({"calibrate", "model", "--data", "ids.jsonl", "-o", "s.json"}).exit_code == 0);
  const test::CliResult inject = shell.run({"inject", "model", "-s", "s.json", "-o", "out"});
  CHECK(inject.exit_code == 0);
  CHECK_FALSE(says(inject.err, "frobnicate"));
  const test::CliResult extract = shell.run({"extract", "out", "-o", "t.json"});
  CHECK(extract.exit_code == 0);
  CHECK_FALSE(says(extract.err, "frobnicate"));
}

}  // namespace fp8kv
