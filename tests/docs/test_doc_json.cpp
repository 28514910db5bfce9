// Compares docs/json.md with the output of commands with --json.
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "docs/markdown.h"
#include "json/json.h"
#include "support/models/draft_golden.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"
#include "support/workplaces/attest_place.h"
#include "support/workplaces/hub_place.h"

using namespace fp8kv;

namespace {

// A row of a table, for one key such as "layers[].k_scale".
struct Row {
  std::string type;  // "number or null"
  bool always = true;
  bool seen = false;
};

// The tables of the page, by their headings.
using Sections = std::map<std::string, std::map<std::string, Row>>;

Sections read_page() {
  Sections sections;
  std::string heading;
  for (const std::string& line : test::lines_of(test::page_text("docs/json.md"))) {
    if (line.starts_with("## ")) heading = line.substr(3);
    if (!line.starts_with("| `")) continue;
    const size_t second = line.find(" | "), third = line.find(" |", second + 3);
    const std::string keys = line.substr(0, second);
    const Row row{line.substr(second + 3, third - second - 3), !keys.ends_with(" ?")};
    for (size_t at = keys.find('`'); at != keys.npos; at = keys.find('`', at + 1)) {
      const size_t end = keys.find('`', at + 1);
      const bool first = sections[heading].emplace(keys.substr(at + 1, end - at - 1), row).second;
      CAPTURE(line);
      CHECK(first);
      at = end;
    }
  }
  return sections;
}

std::string type_of(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_bool()) return "bool";
  if (value.is_number()) return "number";
  if (value.is_string()) return "text";
  return value.is_array() ? "list" : "object";
}

// The section that a type links to: "runtime" for "list of [runtime](#runtime)". "" for a type
// without a link.
std::string section_of(const std::string& type) {
  const size_t open = type.find('[');
  return open == type.npos ? "" : type.substr(open + 1, type.find(']') - open - 1);
}

bool allows(const std::string& type, const Json& value) {
  const std::string found = type_of(value);
  for (const std::string& word : test::words_of(type)) {
    if (word == found) return true;
    if (word[0] == '[' && found == "object" && !type.starts_with("list")) return true;
    if (word == "of") return false;  // the rest of the type describes the elements
  }
  return false;
}

class Checker {
 public:
  explicit Checker(Sections& sections) : sections_(sections) {}

  void check(const Json& object, const std::string& section, const std::string& prefix = "") {
    for (size_t i = 0; i < object.size(); ++i) {
      const std::string path = prefix + object.key(i);
      CAPTURE(section);
      CAPTURE(path);
      Row* row = find_row(section, path, prefix);
      REQUIRE(row != nullptr);
      row->seen = true;
      CAPTURE(row->type);
      CHECK(allows(row->type, object.value(i)));
      descend(object.value(i), *row, section, known_as_);
    }
  }

 private:
  // Finds the row by the key's name, or the row for any key there, such as "dtypes.*".
  Row* find_row(const std::string& section, const std::string& path, const std::string& prefix) {
    auto& rows = sections_.at(section);
    known_as_ = rows.contains(path) ? path : prefix + "*";
    const auto found = rows.find(known_as_);
    return found == rows.end() ? nullptr : &found->second;
  }

  void descend(const Json& value, const Row& row, const std::string& section,
               const std::string path) {
    const std::string other = section_of(row.type);
    const auto inside = [&](const Json& object, const std::string& prefix) {
      other.empty() ? check(object, section, prefix) : check(object, other);
    };
    if (value.is_object()) inside(value, path + ".");
    if (!value.is_array()) return;
    const std::string elements =
        row.type.find("of ") == row.type.npos ? "" : row.type.substr(row.type.find("of ") + 3);
    for (size_t i = 0; i < value.size(); ++i) {
      CAPTURE(path);
      if (value[i].is_object()) {
        inside(value[i], path + "[].");
      } else if (!elements.empty()) {
        CHECK((type_of(value[i]) == elements || value[i].is_null()));
      }
    }
  }

  Sections& sections_;
  std::string known_as_;
};

// The JSON output of each command for a small model. Every schema occurs at least once.
std::vector<Json> outputs() {
  const test::TempDir temp;
  const std::string demo = (test::source_dir() / "datasets/demo").string();
  const std::string golden = (test::source_dir() / "tests/golden/dialects/").string();
  const std::string text = (test::source_dir() / "datasets/calibration.txt").string();
  const std::string yarn = (test::source_dir() / "tests/golden/qwen2-yarn").string();
  const test::DraftGolden golden_with_draft("qwen3.5");
  const std::string draft = (golden_with_draft.folder / "m").string();
  const std::string draft_text = (golden_with_draft.folder / "d.jsonl").string();
  const std::string window = "{\"input_ids\": [1, 2, 3, 4]}\n";
  temp.write("ids.jsonl", window);
  temp.write("more-ids.jsonl", window + window + window + window);
  const std::filesystem::path python = temp.write(
      "python",
      "#!/bin/sh\ncat >/dev/null\necho '{\"runtime\": \"vllm\", \"version\": \"0.32.0\", "
      "\"python\": \"3.11.7\", \"turns_on\": true, \"modules\": [{\"module\": "
      "\"model.layers.0.self_attn.attn\", \"layer\": 0, \"k\": [0.5], \"v\": [0.5]}]}' >&3\n");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  temp.write("prompts.jsonl",
             "{\"prompt\": \"London\", \"id\": \"a\", \"n\": 2, \"max_tokens\": 2, "
             "\"logprobs\": 1}\n");
  temp.write("scored.jsonl", "{\"prompt\": \"London\", \"continuations\": [\" is\"]}\n");
  temp.write("items.jsonl",
             "{\"prompt\": \"The cat\", \"choices\": [\"sat\", \"ran\"], \"answer\": 0}\n");
  temp.write("texts.jsonl", "{\"prompt\": \"The cat\", \"answer\": \"sat\", \"max_tokens\": 2}\n");
  const std::vector<std::vector<std::string>> commands = {
      {"calibrate", demo, "--data", text, "--seq-len", "32", "--samples", "4", "-o", "s.json"},
      {"calibrate", demo, "--data", text, "--seq-len", "32", "--samples", "4", "--shard", "0/2",
       "-o", "p0.json"},
      {"calibrate", demo, "--data", text, "--seq-len", "32", "--samples", "4", "--shard", "1/2",
       "-o", "p1.json"},
      {"calibrate", demo, "--data", text, "--seq-len", "32", "--samples", "4", "--headroom", "2",
       "-o", "doubled.json"},
      {"calibrate", yarn, "--data", "ids.jsonl", "-o", "yarn.json"},
      {"merge", "p0.json", "p1.json", "-o", "m.json"},
      {"inject", demo, "--scales", "s.json", "-o", "kv"},
      {"quantize", demo, "--scales", "s.json", "-o", "fp8"},
      {"equalize", yarn, "--data", "more-ids.jsonl", "--for", "int8", "-o", "eq"},
      {"plan", demo, "--calibration-time"},
      {"fit", demo, "--data", text, "--seq-len", "32", "--samples", "4", "--max-kld", "10"},
      {"verify", "kv"},
      {"verify", demo, "--gpu", "mi300"},
      {"verify", "kv", "--with", "./python"},
      {"extract", golden + "divided-by-240", "-o", "e.json"},
      {"extract", "--list", "kv"},
      {"run", demo, "--prompts", "prompts.jsonl"},
      {"run", demo, "--prompts", "scored.jsonl"},
      {"eval", demo, "--data", text, "--seq-len", "32", "--samples", "4", "--policy", "amax",
       "--fail-if", "kld > 100"},
      {"eval", "fp8", "--data", text, "--seq-len", "32", "--samples", "4", "--against", demo},
      {"eval", demo, "--task", "choices=items.jsonl", "--unit-scales", "--accept",
       "recovery >= 99%"},
      {"eval", demo, "--task", "generate=texts.jsonl", "--unit-scales"},
      {"inspect", "kv"},
      {"inspect", "s.json"},
      {"inspect", "s.json", "--certificate"},
      {"inspect", demo + "/model.safetensors"},
      {"diff", "s.json", "doubled.json"},
      {"inject", demo, "--scales", "s.json", "--for", "vllm", "--q-scales", "-o", "q"},
      {"extract", "--list", "q"},
      {"diff", "q", "s.json"},
      {"calibrate", draft, "--data", draft_text, "-o", "draft.json"},
      {"inject", draft, "--scales", "draft.json", "-o", "draft"},
      {"inspect", "draft"},
      {"verify", "draft", "--runtime", "vllm"},
      {"extract", "--list", "draft"},
      {"diff", "draft.json", "draft"},
      {"plan", demo, "--memory", "1GiB"},
      {"tokenize", demo, text, "--records", "1"},
      {"doctor"},
      {"version"}};
  std::vector<Json> found;
  for (const std::vector<std::string>& command : commands) {
    std::vector<std::string> arguments = command;
    arguments.emplace_back("--json");
    CAPTURE(join(arguments, " "));
    const test::CliResult result = test::run_cli(arguments, {.folder = temp.path()});
    CAPTURE(result.err);
    // Exit codes 1 and 4 are answers too: scales do not arrive, or the items are too few.
    REQUIRE(std::set<int>{0, 1, 4}.contains(result.exit_code));
    const bool lines = command[0] == "run" || command[0] == "tokenize";
    const std::string first = result.out.substr(0, lines ? result.out.find('\n') : result.out.npos);
    found.push_back(Json::parse(first, "output"));
  }
  if (test::reads_addresses()) {
    const test::AttestPlace place("vllm", "these scales without layer 1");
    found.push_back(Json::parse(place.run({"--samples", "8", "--json"}).out, "output"));
  }
  return found;
}

}  // namespace

TEST_CASE("docs: json has every key of every command's --json, with its type") {
  Sections sections = read_page();
  Checker checker(sections);
  std::set<std::string> printed;
  for (const Json& output : outputs()) {
    const std::string schema = output.at("schema").as_string();
    printed.insert(schema);
    CAPTURE(schema);
    REQUIRE(sections.contains(schema));
    checker.check(output, schema);
  }
  for (const auto& [section, rows] : sections) {
    if (section == "fp8kv.attest/1" && !test::reads_addresses()) continue;
    if (section.starts_with("fp8kv.")) CHECK(printed.contains(section));
    for (const auto& [key, row] : rows) {
      CAPTURE(section);
      CAPTURE(key);
      if (row.always) CHECK(row.seen);
    }
  }
}

TEST_CASE("docs: json has every schema that a command prints") {
  const Sections sections = read_page();
  for (const std::string& schema :
       test::first_column("docs/commands.md", {"schema", "what it is"})) {
    // Schemas of files are described on other pages, or nowhere.
    const bool of_file =
        schema.find(".scales/") != schema.npos || schema.find(".histograms/") != schema.npos ||
        schema.find(".equalized/") != schema.npos || schema.find(".partial/") != schema.npos ||
        schema.find(".remote/") != schema.npos;
    CAPTURE(schema);
    CHECK(sections.contains(schema) != of_file);
  }
}
