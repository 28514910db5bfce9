// doctor and --device with modules that are missing, damaged or of another version.
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "base/text.h"
#include "json/json.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

// A copy of the program in its own folder, so that modules can be put beside it.
struct Installed {
  Installed() {
    fs::create_directory(folder / "bin");
    fs::copy_file(test::built_program(), folder / "bin/fp8kv");
  }
  test::CliResult run(const std::vector<std::string>& arguments) const {
    return test::run_cli(arguments, {.folder = folder.path(), .program = folder / "bin/fp8kv"});
  }
  std::string bin() const { return (folder / "bin").string(); }
  std::string not_installed(const std::string& name) const {
    return "fp8kv_" + name + ".so is not installed in '" + bin() + "' or '" +
           (folder.path() / "lib/fp8kv").string() + "'";
  }
  test::TempDir folder;
};

std::string line_with(const std::string& text, const std::string& begin) {
  const size_t at = text.find("\n" + begin);
  REQUIRE(at != text.npos);
  return text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

test::CliResult generate(const Installed& installed, const std::string& device) {
  const std::string demo = (test::source_dir() / "datasets/demo").string();
  return installed.run({"run", demo, "--prompt", "The", "-n", "1", "--device", device});
}

}  // namespace

TEST_CASE("doctor: says what this machine has and why a GPU is not used") {
  const Installed installed;
  const test::CliResult text = installed.run({"doctor"});
  CHECK(text.exit_code == 0);
  CHECK(text.err == "");
  CHECK(text.out.starts_with("fp8kv     "));
  CHECK(line_with(text.out, "cpu ").find("core") != std::string::npos);
  CHECK(line_with(text.out, "memory ").find(" available") != std::string::npos);
  for (const char* name : {"cuda", "hip"}) {
    CHECK(line_with(text.out, name) == name + std::string(10 - std::string(name).size(), ' ') +
                                           "no: " + installed.not_installed(name));
  }
  CHECK(text.out.ends_with("auto      takes cpu\n"));
  const Json json = Json::parse(installed.run({"doctor", "--json"}).out, "doctor");
  CHECK(json.at("schema").as_string() == "fp8kv.doctor/1");
  const Json sets = json.at("cpu").at("instruction_sets");
  std::string here, lacking, best;
  for (size_t i = 0; i < sets.size(); ++i) {
    const std::string name = sets[i].at("name").as_string();
    std::string& list = sets[i].at("here").as_bool() ? here : lacking;
    list += (list.empty() ? "" : ", ") + name;
    const bool slow = sets[i].at("slow").as_bool();
    if (sets[i].at("here").as_bool() && !slow) best = name;
    const std::string not_taken = name + " is not taken: its products are slower here\n";
    CHECK((text.out.find("\n          " + not_taken) != std::string::npos) == slow);
  }
  CHECK(here.starts_with("portable"));
  CHECK(best == json.at("cpu").at("instructions").as_string());
  CHECK(text.out.find("\n          has " + here + (lacking.empty() ? "" : "; lacks " + lacking) +
                      "\n") != std::string::npos);
  CHECK(json.at("memory").at("bytes").as_int() > 1 << 20);
  CHECK(json.at("auto").as_string() == "cpu");
  CHECK(json.at("devices").size() == 2);
  CHECK(json.at("devices")[0].at("reason").as_string() == installed.not_installed("cuda"));
  CHECK_FALSE(json.at("devices")[0].at("usable").as_bool());
}

TEST_CASE("doctor: FP8KV_CPU names the instruction set that every command takes") {
  const Installed installed;
  const auto with = [&](const std::string& name, std::vector<std::string> arguments) {
    return test::run_cli(arguments, {.folder = installed.folder.path(),
                                     .program = installed.folder / "bin/fp8kv",
                                     .environment = {"FP8KV_CPU=" + name}});
  };
  CHECK(line_with(with("portable", {"doctor"}).out, "cpu ").ends_with(", portable by FP8KV_CPU"));
  const Json json = Json::parse(with("portable", {"doctor", "--json"}).out, "doctor");
  CHECK(json.at("cpu").at("instructions").as_string() == "portable");
  // Compares only the line about the CPU, because free memory changes between calls.
  CHECK(line_with(with("", {"doctor"}).out, "cpu ") ==
        line_with(installed.run({"doctor"}).out, "cpu "));
  const std::string demo = (test::source_dir() / "datasets/demo").string();
  const std::vector<std::string> run = {"run", demo, "--prompt", "The", "-n", "1"};
  CHECK(with("portable", run).err.find("cpu: portable, ") != std::string::npos);
  CHECK(with("plain-amx", run).err.find("cpu: AMX in plain C++, ") != std::string::npos);
  for (const std::vector<std::string>& command : {run, {"doctor"}}) {
    const test::CliResult wrong = with("sse9", command);
    CHECK(wrong.exit_code == 2);
    CHECK(wrong.out == "");
    CHECK(wrong.err.find("FP8KV_CPU is 'sse9', which is no instruction set") != std::string::npos);
    CHECK(wrong.err.find("this processor has ") != std::string::npos);
    CHECK(wrong.err.find("portable") != std::string::npos);
  }
}

TEST_CASE("doctor: a module that others may change is named and not loaded") {
  const Installed installed;
  fs::copy_file(FP8KV_EMPTY_MODULE, installed.folder / "bin/fp8kv_cuda.so");
  const fs::path others = installed.folder / "bin";
  fs::permissions(others, fs::perms(0777));
  const std::string reason = cat("is not loaded, since its code may be anyone's: '",
                                 others.string(), "' can be changed by other users");
  CHECK(line_with(installed.run({"doctor"}).out, "cuda ").find(reason) != std::string::npos);
  const test::CliResult chosen = generate(installed, "cuda");
  CHECK(chosen.exit_code == 4);
  CHECK(chosen.err.find(reason + "\nhelp: take away the right to write there") !=
        std::string::npos);
  const test::CliResult automatic = generate(installed, "auto");
  CHECK(automatic.exit_code == 0);
  CHECK(automatic.err.substr(0, automatic.err.find('\n')).find(reason) != std::string::npos);
}

TEST_CASE("doctor: a module that cannot be used is named with the reason") {
  struct Case {
    const char* module;  // the module in that place; "": a file that is not a library
    std::string reason;
    std::string help;
  };
  const Case cases[] = {{"", "': cannot be loaded: ", ""},
                        {FP8KV_EMPTY_MODULE, "': is not a module of this program", ""},
                        {FP8KV_OLD_MODULE, "the module is of fp8kv 0.0.1, the program is ",
                         "help: install both from one build\n"}};
  for (const Case& c : cases) {
    CAPTURE(c.reason);
    const Installed installed;
    fs::permissions(installed.folder.write("bin/fp8kv_cuda.so", "no library"), fs::perms(0755));
    if (*c.module) {
      fs::copy_file(c.module, installed.folder / "bin/fp8kv_cuda.so",
                    fs::copy_options::overwrite_existing);
    }
    CHECK(line_with(installed.run({"doctor"}).out, "cuda ").find(c.reason) != std::string::npos);
    const test::CliResult chosen = generate(installed, "cuda");
    CHECK(chosen.exit_code == 4);
    CHECK(chosen.out == "");
    CHECK(chosen.err.find(c.reason) != std::string::npos);
    CHECK(chosen.err.ends_with(c.help));
    const test::CliResult automatic = generate(installed, "auto");
    CHECK(automatic.exit_code == 0);
    CHECK(automatic.err.starts_with("computing on cpu: "));
    CHECK(automatic.err.substr(0, automatic.err.find('\n')).find(c.reason) != std::string::npos);
  }
}

}  // namespace fp8kv
