// Tokenizers at addresses: the requests, the ids, and the cache.
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/says.h"
#include "support/workplaces/hub_place.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

using test::says;

constexpr const char* kText = "{\"text\": \"A cow?\"}\n{\"text\": \"two goats\"}\n";

// A hub with the tokenizer of the demo model, beside weights that must not be read.
struct Place : test::HubPlace {
  explicit Place(test::HubServer::InPlace in_place = {}) : HubPlace(std::move(in_place)) {
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
      fs::copy(test::source_dir() / "datasets/demo" / name, temp / "hub/org/big" / name);
    }
    temp.write("text.jsonl", kText);
  }
  test::CliResult tokenize(const std::string& model, const std::vector<std::string>& more = {},
                           const std::vector<std::string>& environment = {}) const {
    std::vector<std::string> arguments = {"tokenize", model, "text.jsonl", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments, environment);
  }
  uint64_t bytes_of(const std::vector<std::string>& files) const {
    uint64_t sum = 0;
    for (const std::string& file : files) sum += fs::file_size(temp / "hub/org/big" / file);
    return sum;
  }
};

// The names of the files that were asked for.
std::multiset<std::string> asked_files(const test::HubPlace& place) {
  std::multiset<std::string> names;
  for (const test::HubAsk& ask : place.server.asked()) {
    names.insert(ask.target.substr(ask.target.rfind('/') + 1));
  }
  return names;
}

TEST_CASE("cli address tokenizers: the ids of a local folder, in six requests") {
  if (!test::reads_addresses()) return;
  const Place place;
  const test::CliResult result = place.tokenize("hf://org/big");
  CHECK_MESSAGE(result.exit_code == 0, result.err);
  CHECK(result.out == place.tokenize("hub/org/big").out);
  CHECK(says(result.out, "\"ids\""));
  CHECK(asked_files(place) ==
        std::multiset<std::string>{"added_tokens.json", "chat_template.jinja", "chat_template.json",
                                   "special_tokens_map.json", "tokenizer.json",
                                   "tokenizer_config.json"});
  const uint64_t bytes = place.bytes_of({"tokenizer.json", "tokenizer_config.json"});
  CHECK(place.server.body_bytes() == bytes);
  CHECK_MESSAGE(says(result.err, cat("read ", human_bytes(bytes), " in 6 requests\n")), result.err);
}

TEST_CASE(
    "cli address tokenizers: a second call asks which commit is meant, offline not even that") {
  if (!test::reads_addresses()) return;
  const Place place;
  const std::string ids = place.tokenize("hf://org/big").out;
  const uint64_t bytes = place.server.body_bytes();
  CHECK(place.tokenize("hf://org/big").out == ids);
  CHECK(place.server.asked().size() == 7);
  CHECK(place.server.body_bytes() == bytes + place.bytes_of({"tokenizer_config.json"}));
  CHECK(place.tokenize("hf://org/big", {}, {"HF_HUB_OFFLINE=1"}).out == ids);
  CHECK(place.tokenize(cat("hf://org/big@", test::kHubCommit)).out == ids);
  CHECK(place.server.asked().size() == 7);
  CHECK(place.tokenize("hf://org/big", {"--no-cache"}).out == ids);
  CHECK(place.server.asked().size() == 13);
}

TEST_CASE("cli address tokenizers: a folder that is not on a hub") {
  if (!test::reads_addresses()) return;
  const Place place;
  const test::CliResult first = place.tokenize(place.folder("org/big"));
  CHECK_MESSAGE(first.out == place.tokenize("hub/org/big").out, first.err);
  const uint64_t bytes = place.server.body_bytes();
  const test::CliResult second = place.tokenize(place.folder("org/big"));
  CHECK(second.out == first.out);
  CHECK(place.server.body_bytes() == bytes);
  CHECK_MESSAGE(says(second.err, "in 6 requests: the cache has what is needed"), second.err);
}

TEST_CASE("cli address tokenizers: chats are rendered with the model's own template") {
  if (!test::reads_addresses()) return;
  const Place place;
  place.temp.write("hub/org/big/chat_template.jinja",
                   "{% for message in messages %}<{{ message.content }}>{% endfor %}");
  const test::CliResult remote = place.tokenize("hf://org/big", {"--chat"});
  CHECK_MESSAGE(remote.exit_code == 0, remote.err);
  CHECK(says(remote.out, "<A cow?>"));
  CHECK(remote.out == place.tokenize("hub/org/big", {"--chat"}).out);
}

TEST_CASE("cli address tokenizers: vocab.json and merges.txt, if there is no other") {
  if (!test::reads_addresses()) return;
  const Place place;
  const fs::path folder = place.temp / "hub/org/big";
  fs::remove(folder / "tokenizer.json");
  fs::remove(folder / "tokenizer_config.json");
  place.temp.write("hub/org/big/tokenizer_config.json",
                   R"({"tokenizer_class": "GPT2Tokenizer", "unk_token": "?"})");
  place.temp.write("hub/org/big/vocab.json", R"({"?":0,"o":1,"a":2,"t":3,"s":4,"at":5,"w":6})");
  place.temp.write("hub/org/big/merges.txt", "#version: 0.2\na t\n");
  const test::CliResult local = place.tokenize("hub/org/big");
  const test::CliResult remote = place.tokenize("hf://org/big");
  CHECK_MESSAGE(local.exit_code == 0, local.err);
  CHECK_MESSAGE(remote.out == local.out, remote.err);
}

TEST_CASE("cli address tokenizers: a model without one is named by its address") {
  if (!test::reads_addresses()) return;
  const test::HubPlace place;
  const test::CliResult result = place.run({"tokenize", "hf://org/big"});
  CHECK(result.exit_code == 3);
  CHECK_MESSAGE(says(result.err,
                     "'hf://org/big': has no tokenizer.json, no tekken.json, no tokenizer.model, "
                     "and no vocab.json with a merges.txt\nhelp: "),
                result.err);
  CHECK_FALSE(fs::exists(place.temp / "cache/ref-main"));
}

TEST_CASE("cli address tokenizers: one that is too large is not taken into memory") {
  if (!test::reads_addresses()) return;
  const Place place([](const test::HubAsk& ask) -> std::optional<test::HubAnswer> {
    if (!ask.target.ends_with("/tokenizer_config.json")) return std::nullopt;
    return test::HubAnswer{200, {}, std::string((16 << 20) + 1, ' '), 100};
  });
  const test::CliResult result = place.tokenize("hf://org/big");
  CHECK(result.exit_code == 3);
  CHECK_MESSAGE(says(result.err, "tokenizer_config.json: is longer than the 16.0 MiB"), result.err);
}

TEST_CASE("cli address tokenizers: a cached file that was cut is read again") {
  if (!test::reads_addresses()) return;
  const Place place;
  const std::string ids = place.tokenize("hf://org/big").out;
  for (const auto& entry : fs::recursive_directory_iterator(place.temp / "cache")) {
    if (entry.path().filename() == "tokenizer.json") fs::resize_file(entry.path(), 9);
  }
  CHECK(place.tokenize("hf://org/big").out == ids);
  CHECK(place.server.asked().size() == 12);
}

}  // namespace
}  // namespace fp8kv
