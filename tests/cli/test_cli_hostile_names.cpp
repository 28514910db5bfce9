// Names from foreign files must do nothing in a terminal, and be one word in a shell.
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/terminal_text.h"
#include "base/text.h"
#include "json/json.h"
#include "support/models/small_tokenizer.h"
#include "support/models/tiny_checkpoint.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/program/shell_words.h"
#include "support/program/terminal.h"
#include "support/scale_texts.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

// Clears the screen in two ways, reverses the line, forges a line, and runs a command.
const std::string kActs = "\x1b[2J\u009b2J\x7f\r\u202e\u2066\nFORGED";
const std::string kRuns = "a; touch X; '$(touch X)`touch X`";
const std::string kHostile = kRuns + kActs;

// The name as a JSON string, with quotes.
std::string in_json(const std::string& name) {
  JsonWriter json(JsonWriter::Layout::one_line);
  json.value(name);
  return json.text();
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  REQUIRE_MESSAGE(at != text.npos, what);
  return text.replace(at, what.size(), by);
}

Strings lines_of(const std::string& text) {
  Strings lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void check_harmless(const std::string& text) {
  CHECK(terminal_text(text) == text);
  for (const std::string& line : lines_of(text)) CHECK_FALSE(line.starts_with("FORGED"));
}

struct Place {
  Place() {
    test::write_tiny_checkpoint(temp / "model", test::tiny_config());
    temp.write("model/tokenizer.json", test::SmallTokenizer{}.text());
    temp.write("ids.jsonl", "{\"input_ids\": [1, 5, 9, 33]}\n");
    temp.write("chat.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"ab\"}]}\n");
  }
  // Runs a command and checks its output. `shows_text`: stdout repeats given text, which may have
  // line ends.
  test::CliResult run(const Strings& arguments, bool shows_text = false) const {
    const test::CliResult result = test::run_cli(
        arguments,
        {.folder = temp.path(), .environment = {"HF_HUB_CACHE=" + (temp / "cache").string()}});
    CAPTURE(join(arguments));
    CAPTURE(result.err);
    check_harmless(result.err);
    if (!shows_text) check_harmless(result.out);
    CHECK_FALSE(fs::exists(temp / "X"));
    return result;
  }
  std::string read(const std::string& name) const { return test::read_file(temp / name); }
  test::TempDir temp;
};

// The words of each command that follows `begin` in `text`, as a shell splits them.
std::vector<Strings> commands_behind(const std::string& begin, const std::string& text,
                                     const fs::path& folder) {
  std::vector<Strings> commands;
  for (const std::string& line : lines_of(text)) {
    const size_t at = line.find(begin);
    if (at == line.npos) continue;
    const std::string command = line.substr(at + begin.size());
    commands.push_back(test::shell_words(command, folder));
  }
  return commands;
}

}  // namespace

TEST_CASE("cli hostile names: commands about a folder hold its name as one word") {
  const Place place;
  for (const std::string& name : {kHostile, std::string("\xff a"), std::string("-rf")}) {
    CAPTURE(name);
    fs::copy(place.temp / "model", place.temp / name, fs::copy_options::recursive);
    const std::string path = name.starts_with('-') ? "./" + name : name;
    place.run({"calibrate", path, "--data", "ids.jsonl", "-o", "s.json", "--force"});
    const std::string out = path + "-kv";
    const test::CliResult made = place.run({"inject", path, "-s", "s.json", "-o", out});
    CHECK(made.exit_code == 0);
    const auto served = commands_behind("  vllm ", made.out, place.temp.path());
    REQUIRE(served.size() == 1);
    CHECK(served[0][1] == out);
    const test::CliResult fix = place.run({"verify", path, "--runtime", "vllm"});
    const auto fixes = commands_behind("fix: fp8kv ", fix.out, place.temp.path());
    REQUIRE(fixes.size() >= 1);
    CHECK(fixes[0][1] == path);
    place.run({"inspect", out});
    place.run({"plan", path});
    place.run({"run", path, "--prompts", "ids.jsonl", "-n", "1"});
    const test::CliResult no_parent =
        place.run({"inject", path, "-s", "s.json", "-o", path + "no/x"});
    const auto mkdirs = commands_behind("make it first: ", no_parent.err, place.temp.path());
    REQUIRE(mkdirs.size() == 1);
    CHECK(mkdirs[0].back().ends_with(fs::path(path + "no").filename().string()));
  }
}

TEST_CASE("cli hostile names: the line that fetches files of an index has their names as words") {
  const Place place;
  const std::string entry = "cache/models--org--tiny/";
  place.temp.write(entry + "refs/main", "c0ffee");
  place.temp.write(entry + "snapshots/c0ffee/config.json", place.read("model/config.json"));
  const auto fetched = [&](const std::string& file) {
    place.temp.write(entry + "snapshots/c0ffee/model.safetensors.index.json",
                     cat(R"({"weight_map": {"a": )", in_json(file), "}}"));
    const test::CliResult result = place.run({"inspect", "org/tiny"});
    CHECK(result.exit_code == 3);
    const auto commands = commands_behind("fetch what is missing: ", result.err, place.temp.path());
    REQUIRE(commands.size() == 1);
    return commands[0];
  };
  CHECK(fetched(kHostile) == Strings{"hf", "download", "org/tiny", kHostile});
  CHECK(fetched("model 1.safetensors") ==
        Strings{"hf", "download", "org/tiny", "model 1.safetensors"});
  CHECK(fetched("--local-dir=/etc")[3] == "--include");
}

TEST_CASE("cli hostile names: names of tensors, in an index and in a header") {
  const Place place;
  const std::string header =
      cat("{", in_json(kHostile), R"(:{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)",
          R"("__metadata__":{"format":)", in_json(kHostile), "}}");
  const std::string size(1, static_cast<char>(header.size()));
  const std::string file = size + std::string(7, '\0') + header + std::string(4, '\0');
  REQUIRE(header.size() < 256);
  place.temp.write("odd.safetensors", file);
  CHECK(place.run({"inspect", "odd.safetensors"}).exit_code == 0);
  place.temp.write("odd/config.json", place.read("model/config.json"));
  place.temp.write("odd/model.safetensors", file);
  place.temp.write("index/config.json", place.read("model/config.json"));
  place.temp.write("index/model.safetensors.index.json",
                   cat(R"({"weight_map": {)", in_json(kHostile), ": ", in_json(kHostile), "}}"));
  place.temp.write("named/config.json", place.read("model/config.json"));
  place.temp.write("named/model.safetensors.index.json",
                   cat(R"({"weight_map": {)", in_json(kHostile + "x"), R"(: "m.safetensors"}})"));
  place.temp.write("named/m.safetensors", file);
  for (const char* folder : {"odd", "index", "named"}) {
    place.run({"inspect", folder});
    place.run({"verify", folder});
    place.run({"plan", folder});
    place.run({"extract", folder, "-o", "-"});
    place.run({"calibrate", folder, "--data", "ids.jsonl", "-o", "t.json"});
    place.run({"quantize", folder, "-o", "q"});
  }
}

TEST_CASE("cli hostile names: values and keys of config.json") {
  const Place place;
  const std::string config = place.read("model/config.json");
  Strings changed = {replaced(config, "{", cat("{", in_json(kHostile), ": 1,"))};
  for (const char* value : {"\"LlamaForCausalLM\"", "\"llama\"", "\"float32\"", "\"silu\""}) {
    if (config.find(value) != config.npos) {
      changed.push_back(replaced(config, value, in_json(kHostile)));
    }
  }
  CHECK(changed.size() >= 4);
  for (const char* member : {"quantization_config\": {\"quant_method", "rope_scaling\": {\"type"}) {
    changed.push_back(replaced(config, "{", cat("{\"", member, "\": ", in_json(kHostile), "},")));
  }
  for (const std::string& text : changed) {
    place.temp.write("model/config.json", text);
    place.run({"inspect", "model"});
    place.run({"verify", "model"});
    place.run({"plan", "model"});
    place.run({"run", "model", "--prompts", "ids.jsonl", "-n", "1"});
    place.run({"quantize", "model", "-o", "q", "--dry-run"});
  }
}

TEST_CASE("cli hostile names: scale files, their names and what they say of themselves") {
  const Place place;
  place.run({"calibrate", "model", "--data", "ids.jsonl", "-o", "s.json"});
  const std::string scales = place.read("s.json");
  place.temp.write(kHostile, scales);
  const test::CliResult certified = place.run({"inspect", kHostile, "--certificate"});
  place.run({"inspect", kHostile});
  place.run({"verify", kHostile});
  place.run({"diff", kHostile, "s.json"});
  place.run({"merge", kHostile, "s.json", "-o", "m.json"});
  for (const char* key :
       {"\"source\": \"", "\"policy\": \"", "\"model_type\": \"", "\"dtype\": \""}) {
    const size_t at = scales.find(key);
    if (at == scales.npos) continue;
    const size_t begin = at + std::string(key).size() - 1, end = scales.find('"', begin + 1) + 1;
    std::string changed = scales;
    changed.replace(begin, end - begin, in_json(kHostile));
    place.temp.write("odd.json", changed);
    place.run({"inspect", "odd.json"});
    place.run({"inspect", "odd.json", "--certificate"});
    place.run({"verify", "odd.json"});
    place.run({"inject", "model", "-s", "odd.json", "-o", "out", "--dry-run"});
  }
}

TEST_CASE("cli hostile names: templates, tokenizers, prompts and data files") {
  const Place place;
  for (const std::string& source :
       {"{{ raise_exception(" + in_json(kHostile) + ") }}", "{{ x." + kHostile + " }}",
        "{{ messages | " + kHostile + " }}", kHostile, "{% " + kHostile + " %}"}) {
    place.temp.write("model/tokenizer_config.json",
                     cat(R"({"chat_template": )", in_json(source), "}"));
    const test::CliResult listed = place.run({"tokenize", "model", "chat.jsonl"}, true);
    CHECK(terminal_text(listed.out) == listed.out);
  }
  fs::remove(place.temp / "model/tokenizer_config.json");
  test::SmallTokenizer odd;
  odd.normalizer = cat(R"({"type": )", in_json(kHostile), "}");
  place.temp.write("model/tokenizer.json", odd.text());
  place.run({"run", "model", "--prompt", "a"});
  odd.normalizer = "null";
  odd.vocab = cat(R"({"<unk>":0,"a":1,)", in_json(kHostile), ":1}");
  place.temp.write("model/tokenizer.json", odd.text());
  place.run({"run", "model", "--prompt", "a"});
  place.temp.write("model/tokenizer.json", test::SmallTokenizer{}.text());
  place.run({"run", "model", "--prompt", kHostile, "-n", "1", "-q"}, true);
  place.run({"calibrate", "model", "--data", kHostile + "none", "-o", "t.json"});
  place.temp.write(kHostile + ".jsonl", cat("{", in_json(kHostile), ": 1}\n"));
  place.run({"calibrate", "model", "--data", kHostile + ".jsonl", "-o", "t.json"});
  place.run({"run", "model", "--prompts", kHostile + ".jsonl"});
  place.temp.write(kHostile + ".csv", kHostile + "," + kHostile + "\n1,2\n");
  place.run({"calibrate", "model", "--data", kHostile + ".csv", "-o", "t.json"});
  place.run({"inspect", "model", "--" + kHostile});
  place.run({kHostile});
}

TEST_CASE("cli hostile names: a prompt and its answer act on no terminal") {
  const Strings command = {
      "run", (test::source_dir() / "datasets/demo").string(), "--prompt", kActs, "-n", "1", "-q"};
  CHECK(test::run_cli(command).out.starts_with(kActs));
  test::Terminal terminal(80);
  test::run_cli(command, {.out = terminal.path});
  CHECK(terminal.text().starts_with(terminal_text(kActs)));
}

TEST_CASE("cli hostile names: JSON keeps the names as they are") {
  const Place place;
  const std::string header =
      cat("{", in_json(kHostile), R"(:{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})");
  REQUIRE(header.size() < 256);
  place.temp.write("odd.safetensors", std::string(1, static_cast<char>(header.size())) +
                                          std::string(7, '\0') + header + std::string(4, '\0'));
  const test::CliResult result =
      test::run_cli({"inspect", "odd.safetensors", "--json"}, {.folder = place.temp.path()});
  const Json listed = Json::parse(result.out, "listed");
  CHECK(listed.at("tensors")[0].at("name").as_string() == kHostile);
}

}  // namespace fp8kv
