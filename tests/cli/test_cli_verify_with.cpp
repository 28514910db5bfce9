// verify --with runs a Python. Here shell scripts answer like the loaders of runtimes, or fail to.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "json/json.h"
#include "support/models/tiny_checkpoint.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

// A folder with a tiny model of two layers and its scales, and Pythons to write there.
struct Place {
  Place() {
    test::write_tiny_checkpoint(temp / "model", test::tiny_config());
    temp.write("scales.json", R"({"model_type": "llama", "kv_cache": {"dtype": "float8_e4m3fn", )"
                              R"("scaling_factor": {"0": {"0": 0.5, "1": 0.1}}}})");
    const test::CliResult made =
        run({"inject", "model", "--scales", "scales.json", "-o", "folder"});
    REQUIRE(made.exit_code == 0);
  }
  test::CliResult run(const Strings& arguments, test::CliSetup setup = {}) const {
    setup.folder = temp.path();
    return test::run_cli(arguments, setup);
  }
  // Writes an executable "python" that runs `script`.
  void python(const std::string& script) const {
    const fs::path file = temp.write("python", "#!/bin/sh\n" + script + "\n");
    fs::permissions(file, fs::perms::owner_all);
  }
  // Writes a "python" that reports these scales in memory.
  void answering(const std::string& answer) const {
    python("cat > /dev/null\necho something else\ncat >&3 <<'END'\n" + answer + "\nEND");
  }
  test::CliResult verify(const Strings& more = {}) const {
    Strings arguments = {"verify", "folder", "--with", "./python"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }

  test::TempDir temp;
};

std::string answer(const std::string& k0, const std::string& v0, const std::string& more = "") {
  return cat(R"({"runtime": "vllm", "version": "0.32.0", "python": "3.11.7", "turns_on": true,
               "modules": [{"module": "model.layers.0.self_attn.attn", "layer": 0, "k": )",
             k0, R"(, "v": )", v0, "}", more, "]}");
}

constexpr const char* kSecond = R"(, {"module": "b", "layer": 1, "k": [0.10000000149011612],
                                      "v": [0.10000000149011612]})";
constexpr const char* kBegun = "'./python' loads 'folder': 600 seconds at most\n";
constexpr const char* kHelp = "help: 'fp8kv verify' without --with says what its versions take\n";

TEST_CASE("cli verify --with: scales that are all in memory are a yes") {
  const Place at;
  at.answering(answer("[0.5]", "[0.5]", kSecond));
  const test::CliResult result = at.verify();
  CHECK(result.exit_code == 0);
  CHECK(result.err == kBegun);
  CHECK(result.out ==
        "runtime   vLLM 0.32.0, its loader on the CPU, without the weights\n"
        "cache     FP8 without being asked\n"
        "scales    4 of 4 arrive: 4 equal\n");
}

TEST_CASE("cli verify --with: an NVFP4 cache is named as one") {
  const Place at;
  at.answering(answer("[0.5]", "[0.5]", cat(kSecond, R"(], "cache": "nvfp4", "ignored": [0)")));
  const test::CliResult result = at.verify();
  CHECK_MESSAGE(result.exit_code == 0, result.err);
  CHECK(result.out.find("cache     NVFP4 without being asked\n") != std::string::npos);
}

TEST_CASE("cli verify --with: what is not in memory is shown beside the file") {
  const Place at;
  at.answering(answer("[1.0]", "null", R"(, {"module": "b", "layer": 1, "k": [0.10009765625],
                                             "v": [0.3]})"));
  const test::CliResult result = at.verify();
  CHECK(result.exit_code == 1);
  CHECK(result.out ==
        "runtime   vLLM 0.32.0, its loader on the CPU, without the weights\n"
        "cache     FP8 without being asked\n"
        "scales    1 of 4 arrive: 1 rounded, 1 1.0, 1 missing and 1 differs\n"
        "rounded   by up to 0.098 %, in layer 1 K\n"
        "\n"
        "layer  scale  file  memory  result\n"
        "    0  K       0.5       1  1.0\n"
        "    0  V       0.5    none  missing\n"
        "    1  V       0.1     0.3  differs\n");
  CHECK(result.err ==
        cat(kBegun,
            "fp8kv: verify: not every scale arrives: 3 of 4 are not in vLLM 0.32.0's memory as in "
            "the files\n",
            kHelp));
}

TEST_CASE("cli verify --with: its JSON has every scale, and what is no number of JSON as null") {
  const Place at;
  at.answering(answer("[0.5]", "[NaN]", kSecond));
  const test::CliResult result = at.verify({"--json", "-q"});
  CHECK(result.exit_code == 1);
  const Json json = Json::parse(result.out, "out");
  CHECK(json.get_string("schema", "") == "fp8kv.verify-with/1");
  CHECK(json.get_string("runtime", "") == "vllm");
  CHECK(json.get_string("version", "") == "0.32.0");
  CHECK(json.at("turns_on").as_bool());
  CHECK_FALSE(json.has("failure"));
  CHECK_FALSE(json.at("arrives").as_bool());
  CHECK(json.at("counts").at("equal").as_int() == 3);
  CHECK(json.at("counts").at("differs").as_int() == 1);
  REQUIRE(json.at("scales").size() == 4);
  const Json v = json.at("scales")[1];
  CHECK(v.at("layer").as_int() == 0);
  CHECK(v.get_string("of", "") == "V");
  CHECK(v.at("file")[0].as_double() == 0.5);
  CHECK_FALSE(v.has("memory"));
  CHECK(v.get_string("result", "") == "differs");
}

TEST_CASE("cli verify --with: a loader that stops is a no, with what it said") {
  const Place at;
  at.answering(R"({"runtime": "vllm", "version": "0.32.0", "python": "3.11.7",
                   "failure": "KeyError: 'layers.0.k_scale'\n\u001b[31mred"})");
  const test::CliResult result = at.verify();
  CHECK(result.exit_code == 1);
  CHECK(result.out ==
        "runtime   vLLM 0.32.0, its loader on the CPU, without the weights\n"
        "scales    none: loading stopped\n");
  CHECK(result.err == cat(kBegun,
                          "fp8kv: verify: vLLM 0.32.0 does not load 'folder': KeyError: "
                          "'layers.0.k_scale' [31mred\n",
                          kHelp));
  const Json json = Json::parse(at.verify({"--json", "-q"}).out, "out");
  CHECK(json.get_string("failure", "") == "KeyError: 'layers.0.k_scale' [31mred");
  CHECK(json.at("scales").size() == 0);
}

TEST_CASE("cli verify --with: the Python gets the script by its input, and the question in it") {
  const Place at;
  at.python(cat("cd '", at.temp.path().string(), "'\necho $* > words\ncat > question\nexit 3"));
  const test::CliResult result = at.verify({"--runtime", "vllm"});
  CHECK(result.exit_code == 3);
  CHECK(test::read_file(at.temp / "words") == "-I -u -B -\n");
  const std::string question = test::read_file(at.temp / "question");
  const std::string begin = "REQUEST = ";
  REQUIRE(question.starts_with(begin));
  const Json request =
      Json::parse(question.substr(begin.size(), question.find('\n') - begin.size()), "question");
  CHECK(request.get_string("folder", "") == (at.temp / "folder").string());
  CHECK(request.get_string("runtime", "") == "vllm");
  CHECK(request.at("tensors").size() == 8);
  CHECK(request.at("tensors")[0].as_string() == "model.layers.0.self_attn.attn.k_scale");
  const auto part = [](const std::string& name) {
    return test::read_file(test::source_dir() / "src/scales/loaded/script" / name);
  };
  CHECK(question.find(part("common.py")) == question.find('\n') + 1);
  CHECK(question.ends_with(part("main.py")));
}

TEST_CASE("cli verify --with: a Python that crashes is told with its last lines") {
  const Place at;
  at.python("cat > /dev/null\nseq 1 20\necho Traceback >&2\nexit 7");
  const test::CliResult result = at.verify();
  CHECK(result.exit_code == 3);
  CHECK(result.out.empty());
  CHECK(result.err ==
        cat(kBegun,
            "  14\n  15\n  16\n  17\n  18\n  19\n  20\n  Traceback\n"
            "fp8kv: verify: './python': ended without an answer (exit code 7)\n"
            "help: it has to be a Python, of the environment that serves the model\n"));
  at.python("kill -KILL $$");
  const test::CliResult killed = at.verify({"-q"});
  CHECK(killed.exit_code == 5);
  CHECK(killed.err ==
        "fp8kv: verify: './python': was killed while it loaded 'folder', as happens where memory "
        "runs out\nhelp: free memory, or run it on a larger machine\n");
}

TEST_CASE("cli verify --with: one that hangs ends at the time limit") {
  const Place at;
  at.python("echo begun\nsleep 60");
  const test::CliResult result = at.verify({"--timeout", "0.3"});
  CHECK(result.exit_code == 5);
  CHECK(result.err ==
        "'./python' loads 'folder': 0.3 seconds at most\n  begun\n"
        "fp8kv: verify: './python': has not loaded 'folder' within 0.3 seconds\n"
        "help: give it longer with --timeout\n");
}

TEST_CASE("cli verify --with: an interrupt ends it, and what it runs") {
  const Place at;
  at.python(cat("echo $$ > '", (at.temp / "pid").string(), "'\nexec sleep 60"));
  const test::CliResult result = at.run(
      {"verify", "folder", "--with", "./python"}, {.interrupt_when = [&](const auto&) {
        const std::string pid = fs::exists(at.temp / "pid") ? test::read_file(at.temp / "pid") : "";
        return pid.ends_with('\n');
      }});
  CHECK(result.exit_code == 130);
  CHECK(kill(std::stoi(test::read_file(at.temp / "pid")), 0) != 0);
}

TEST_CASE("cli verify --with: nothing is written") {
  const Place at;
  at.answering(answer("[0.5]", "[0.5]", kSecond));
  const auto names = [&] {
    Strings found;
    for (const auto& entry : fs::recursive_directory_iterator(at.temp.path())) {
      found.push_back(entry.path().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  };
  const Strings before = names();
  CHECK(at.verify().exit_code == 0);
  CHECK(names() == before);
}

TEST_CASE("cli verify --with: what cannot be asked for is refused before anything runs") {
  const Place at;
  at.python(cat("touch '", (at.temp / "ran").string(), "'"));
  const auto err = [&](const Strings& more) { return at.verify(more).err; };
  CHECK(err({"--runtime", "vllm@0.32"}) ==
        "fp8kv: verify: --runtime: is 'vllm@0.32', expected vllm, sglang or transformers\n"
        "help: --with runs the version that is installed, and one runtime at a time\n");
  CHECK(at.verify({"--runtime", "vllm", "--runtime", "sglang"}).exit_code == 2);
  const test::CliResult file = at.run({"verify", "scales.json", "--with", "./python"});
  CHECK(file.exit_code == 3);
  CHECK(file.err ==
        "fp8kv: verify: 'scales.json': is no model folder that a runtime could load\n"
        "help: leave out --with\n");
  CHECK(at.run({"verify", "model", "--with", "./python"}).exit_code == 3);
  CHECK(at.run({"verify", "absent", "--with", "./python"}).exit_code == 3);
  CHECK_FALSE(fs::exists(at.temp / "ran"));
  const test::CliResult none = at.run({"verify", "folder", "--with", "./no-python", "-q"});
  CHECK(none.exit_code == 3);
  CHECK(none.err.starts_with(cat("fp8kv: verify: '", (at.temp / "./no-python").string(),
                                 "': cannot start: No such file or directory\n")));
}

TEST_CASE("cli verify --with: a Python without any of the runtimes says so itself") {
  if (std::system("python3 -c '' > /dev/null 2>&1") != 0) {
    test::skip("there is no python3");
    return;
  }
  const Place at;
  at.python("exec python3 -S -E \"$@\"");  // without installed packages
  const test::CliResult result = at.verify({"-q"});
  CHECK(result.exit_code == 3);
  CHECK(result.err ==
        "fp8kv: verify: './python': has none of vLLM, SGLang and transformers\n"
        "help: give --with the Python of the environment that serves the model\n");
  CHECK(at.verify({"-q", "--runtime", "sglang"}).err ==
        "fp8kv: verify: './python': has no SGLang\n"
        "help: give --with the Python of the environment that it is installed in\n");
}

TEST_CASE("cli verify --with: it runs in an empty folder, with few variables") {
  const Place at;
  const std::string into = (at.temp / "seen").string();
  at.python(cat("{ pwd; ls -A | wc -l; env | cut -d= -f1 | sort; } > '", into, "'\nexit 3"));
  at.run({"verify", "folder", "--with", "./python", "-q"},
         {.environment = {"PYTHONSTARTUP=x.py", "PYTHONHOME=/x", "VLLM_PLUGINS=x", "HF_HOME=/hf",
                          "LD_LIBRARY_PATH=", "IFS=x"}});
  const std::string seen = test::read_file(into);
  const std::string folder = seen.substr(0, seen.find('\n'));
  CHECK(fs::path(folder).filename().string().starts_with("fp8kv-"));
  CHECK_FALSE(fs::exists(folder));
  CHECK(seen.starts_with(folder + "\n0\n"));
  for (const char* name : {"HF_HOME", "PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONSAFEPATH"}) {
    CHECK(seen.find(cat("\n", name, "\n")) != seen.npos);
  }
  for (const char* name : {"PYTHONSTARTUP", "PYTHONHOME", "VLLM_PLUGINS", "IFS"}) {
    CHECK(seen.find(cat("\n", name, "\n")) == seen.npos);
  }
}

// Packages for the test: a transformers that loads every model, and a torch.
constexpr const char* kTransformers = R"(
__version__ = "9.9"
class PreTrainedModel: pass
class Model:
    def named_modules(self): return []
class AutoModelForCausalLM:
    @staticmethod
    def from_pretrained(folder, **more): return Model(), {"missing_keys": []}
)";
constexpr const char* kTorch = R"(
import contextlib
no_grad = contextlib.nullcontext
)";

TEST_CASE("cli verify --with: no module of the working folder or of the model is run") {
  if (std::system("python3 -c '' > /dev/null 2>&1") != 0) {
    test::skip("there is no python3");
    return;
  }
  const Place at;
  at.temp.write("site/transformers.py", kTransformers);
  at.temp.write("site/torch.py", kTorch);
  at.temp.write("site/safetensors/__init__.py", "safe_open = None");
  at.temp.write("site/safetensors/torch.py", "");
  // Names of all modules that the script, or an import in it, could load.
  const std::string list = (at.temp / "modules").string();
  REQUIRE(std::system(
              ("python3 -c 'import sys; print(*sys.stdlib_module_names)' > " + list).c_str()) == 0);
  std::istringstream names(test::read_file(list) +
                           " sitecustomize usercustomize transformers torch safetensors vllm sglang"
                           " numpy configuration_tiny modeling_tiny");
  const std::string marker = (at.temp / "ran").string();
  for (std::string name; names >> name;) {
    for (const char* folder : {"", "folder/"}) {
      at.temp.write(cat(folder, name, ".py"), cat("open('", marker, "', 'a').write(__name__)"));
    }
  }
  const std::string site = (at.temp / "site").string();
  const std::string model = (at.temp / "folder").string();
  for (const std::string& path : std::vector<std::string>{
           site, ":" + site, site + ":.:", cat(at.temp.path().string(), ":", model, ":", site)}) {
    CAPTURE(path);
    const test::CliResult result = at.run({"verify", "folder", "--with", "python3", "-q"},
                                          {.environment = {"PYTHONPATH=" + path}});
    CHECK(result.exit_code == 1);
    CHECK(result.out.starts_with("runtime   transformers 9.9, its loader on the CPU"));
    CHECK_FALSE(fs::exists(marker));
  }
}

}  // namespace
}  // namespace fp8kv
