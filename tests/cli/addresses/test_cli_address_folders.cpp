// Folders on servers other than a hub: their cache goes by ETags.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/forms/mistral_form.h"
#include "support/models/family_model.h"
#include "support/says.h"
#include "support/workplaces/hub_place.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

using Answer = std::optional<test::HubAnswer>;

using test::says;

// The server's own answer with another ETag; none for "".
Answer with_etag(const test::HubServer& server, const test::HubAsk& ask, const std::string& etag) {
  test::HubAnswer answer = server.answer(ask);
  answer.headers.erase("ETag");
  if (!etag.empty()) answer.headers["ETag"] = etag;
  return answer;
}

// The number of models in the cache.
size_t cached_models(const test::HubPlace& place) {
  if (!fs::exists(place.temp / "cache")) return 0;
  const fs::recursive_directory_iterator all(place.temp / "cache");
  return static_cast<size_t>(std::count_if(begin(all), end(all), [](const auto& entry) {
    return entry.path().filename() == "config.json";
  }));
}

TEST_CASE("cli address folders: a second call asks for each file, and gets no bytes") {
  if (!test::reads_addresses()) return;
  const test::HubPlace place;
  CHECK(place.run({"extract", place.folder("org/big")}).out == place.local());
  const uint64_t bytes = place.server.body_bytes();
  const size_t before = place.server.asked().size();
  const test::CliResult again = place.run({"extract", place.folder("org/big")});
  CHECK_MESSAGE(again.out == place.local(), again.err);
  CHECK(place.server.body_bytes() == bytes);
  // config.json, the index, two missing files, and the four shards.
  CHECK(place.server.asked().size() == before + 8);
  CHECK(says(again.err, "in 8 requests: the cache has what is needed"));
  CHECK(cached_models(place) == 1);
}

TEST_CASE("cli address folders: Mistral's own format, in one file and with an index") {
  if (!test::reads_addresses()) return;
  const test::HubPlace place;
  const test::FamilyModel model("mistral4");
  const std::string params = test::params_of(model.checkpoint.config());
  const test::OwnTensors tensors = test::own_tensors(model.checkpoint);
  const auto plan = [&](const std::string& folder) {
    return place.run({"plan", folder, "--memory", "1GiB"});
  };
  for (const auto files : {test::OwnFiles::single, test::OwnFiles::indexed}) {
    const std::string name = files == test::OwnFiles::single ? "org/single" : "org/indexed";
    test::write_own_form(place.temp / "hub" / name, params, tensors, files);
    const test::CliResult local = plan("hub/" + name);
    CHECK_MESSAGE(local.exit_code == 0, local.err);
    const test::CliResult remote = plan("hf://" + name);
    CHECK_MESSAGE(remote.out == local.out, remote.err);
  }
  test::write_own_form(place.temp / "hub/org/numbered", params, tensors, test::OwnFiles::numbered);
  CHECK(says(plan("hf://org/numbered").err,
             "has no consolidated.safetensors and no consolidated.safetensors.index.json, so no "
             "weights in safetensors"));
  CHECK(says(place.run({"verify", "hub/org/single"}).err, "is in Mistral's own format"));
}

TEST_CASE("cli address folders: a file that changed is read anew, the others are not") {
  if (!test::reads_addresses()) return;
  const test::HubPlace place;
  place.run({"extract", place.folder("org/big")});
  const fs::path shard = place.temp / "hub/org/big/model-2.safetensors";
  test::write_sharded_model(place.temp / "other", 1 << 19);
  fs::copy_file(place.temp / "other/model-2.safetensors", shard,
                fs::copy_options::overwrite_existing);
  const size_t before = place.server.asked().size();
  CHECK(place.run({"extract", place.folder("org/big")}).out == place.local());
  const std::vector<test::HubAsk> asked = place.server.asked();
  // The two missing files and the scales of the changed shard are not in the cache.
  CHECK(asked.size() == before + 9);
  CHECK(std::count_if(asked.begin() + static_cast<std::ptrdiff_t>(before), asked.end(),
                      [](const auto& ask) { return ask.if_none_match.empty(); }) == 3);
  CHECK(cached_models(place) == 2);
}

TEST_CASE("cli address folders: a server without strong ETags is read anew each time") {
  if (!test::reads_addresses()) return;
  for (const std::string& etag : {std::string(), std::string("W/\"a\""), std::string("a")}) {
    CAPTURE(etag);
    const test::HubServer* server = nullptr;
    const test::HubPlace place(
        [&](const test::HubAsk& ask) { return with_etag(*server, ask, etag); });
    server = &place.server;
    for (size_t i = 1; i <= 2; ++i) {
      const test::CliResult result = place.run({"extract", place.folder("org/big")});
      CHECK_MESSAGE(result.out == place.local(), result.err);
      CHECK(place.server.asked().size() == i * 12);
    }
    for (const test::HubAsk& ask : place.server.asked()) {
      CHECK(ask.if_none_match + ask.if_range == "");
    }
    CHECK(cached_models(place) == 0);
  }
}

TEST_CASE("cli address folders: one file without an ETag keeps the folder out of the cache") {
  if (!test::reads_addresses()) return;
  const test::HubServer* server = nullptr;
  const test::HubPlace place([&](const test::HubAsk& ask) -> Answer {
    if (!ask.target.ends_with("/model-3.safetensors")) return std::nullopt;
    return with_etag(*server, ask, "");
  });
  server = &place.server;
  const test::CliResult result = place.run({"extract", place.folder("org/big")});
  CHECK_MESSAGE(result.out == place.local(), result.err);
  CHECK(cached_models(place) == 0);
}

TEST_CASE("cli address folders: later parts are asked for with If-Range") {
  if (!test::reads_addresses()) return;
  const test::HubPlace place;
  place.run({"extract", place.folder("org/big")});
  for (const test::HubAsk& ask : place.server.asked()) {
    CAPTURE(ask.range);
    const bool later = !ask.range.empty() && !ask.range.starts_with("bytes=0-");
    CHECK(ask.if_range.empty() == !later);
  }
}

TEST_CASE("cli address folders: a change between two parts is noticed by the server") {
  if (!test::reads_addresses()) return;
  const test::HubServer* server = nullptr;
  const test::HubPlace place([&](const test::HubAsk& ask) -> Answer {
    if (ask.if_range.empty()) return std::nullopt;
    test::HubAsk whole = ask;
    whole.range.clear();
    Answer answer = with_etag(*server, whole, "\"another\"");
    answer->cut_after = 1000;
    return answer;
  });
  server = &place.server;
  const test::CliResult result = place.run({"extract", place.folder("org/big")});
  CHECK(result.exit_code == 3);
  CHECK_MESSAGE(says(result.err, "changed while it was read: its ETag is another one"), result.err);
  CHECK(cached_models(place) == 0);
}

TEST_CASE("cli address folders: a server that takes no If-Range is asked without it") {
  if (!test::reads_addresses()) return;
  const test::HubServer* server = nullptr;
  const test::HubPlace place([&](const test::HubAsk& ask) -> Answer {
    if (ask.if_range.empty()) return std::nullopt;
    test::HubAsk whole = ask;
    whole.range.clear();
    return server->answer(whole);
  });
  server = &place.server;
  const test::CliResult result = place.run({"extract", place.folder("org/big")});
  CHECK_MESSAGE(result.out == place.local(), result.err);
}

TEST_CASE("cli address folders: a server that takes no If-None-Match is read anew") {
  if (!test::reads_addresses()) return;
  const test::HubServer* server = nullptr;
  const test::HubPlace place([&](test::HubAsk ask) -> Answer {
    ask.if_none_match.clear();
    return server->answer(ask);
  });
  server = &place.server;
  for (int i = 0; i < 2; ++i) {
    const test::CliResult result = place.run({"extract", place.folder("org/big")});
    CHECK_MESSAGE(result.out == place.local(), result.err);
  }
  CHECK(cached_models(place) == 1);
}

TEST_CASE("cli address folders: a server that redirects is asked at the end of the redirect") {
  if (!test::reads_addresses()) return;
  const test::HubServer* server = nullptr;
  const test::HubPlace place([&](const test::HubAsk& ask) -> Answer {
    if (!ask.target.starts_with("/org/") || !ask.target.ends_with(".safetensors")) return {};
    return test::HubAnswer{302, {{"Location", cat(server->storage(), "/storage", ask.target)}}};
  });
  server = &place.server;
  CHECK(place.run({"extract", place.folder("org/big")}).out == place.local());
  const uint64_t bytes = place.server.body_bytes();
  const test::CliResult again = place.run({"extract", place.folder("org/big")});
  CHECK_MESSAGE(again.out == place.local(), again.err);
  CHECK(place.server.body_bytes() == bytes);
}

TEST_CASE("cli address folders: what a cache lost is read again") {
  if (!test::reads_addresses()) return;
  for (const char* name : {"config.json", "model-2.safetensors", "fp8kv-remote.json"}) {
    CAPTURE(std::string(name));
    const test::HubPlace place;
    place.run({"extract", place.folder("org/big")});
    for (const auto& entry : fs::recursive_directory_iterator(place.temp / "cache")) {
      if (entry.path().filename() == name) fs::resize_file(entry.path(), 3);
    }
    const test::CliResult again = place.run({"extract", place.folder("org/big")});
    CHECK_MESSAGE(again.out == place.local(), again.err);
    const uint64_t bytes = place.server.body_bytes();
    CHECK(place.run({"extract", place.folder("org/big")}).out == place.local());
    CHECK(place.server.body_bytes() == bytes);
  }
}

TEST_CASE("cli address folders: two processes fill one entry, and both have what they need") {
  if (!test::reads_addresses()) return;
  // The first process waits before its last part until the second has made the entry.
  std::promise<void> over;
  const std::shared_future<void> wait = over.get_future().share();
  std::promise<void> reached;
  std::atomic<bool> first = true;
  const test::HubPlace place([&, wait](const test::HubAsk& ask) -> Answer {
    if (!ask.if_range.empty() && first.exchange(false)) {
      reached.set_value();
      wait.wait();
    }
    return std::nullopt;
  });
  const std::string address = place.folder("org/big");
  auto slow = std::async(std::launch::async, [&] { return place.run({"extract", address}); });
  reached.get_future().wait();
  CHECK(place.run({"extract", address}).out == place.local());
  over.set_value();
  const test::CliResult result = slow.get();
  CHECK_MESSAGE(result.out == place.local(), result.err);
  CHECK(cached_models(place) == 1);
}

TEST_CASE(
    "cli address folders: a reader keeps its version while another process reads a newer one") {
  if (!test::reads_addresses()) return;
  const test::HubPlace place;
  place.run({"extract", place.folder("org/big")});
  std::vector<fs::path> before;
  for (const auto& entry : fs::recursive_directory_iterator(place.temp / "cache")) {
    if (entry.is_regular_file() && entry.path().extension() == ".safetensors") {
      before.push_back(entry.path());
    }
  }
  test::write_sharded_model(place.temp / "other", 1 << 19);
  fs::copy(place.temp / "other", place.temp / "hub/org/big",
           fs::copy_options::overwrite_existing | fs::copy_options::recursive);
  CHECK(place.run({"extract", place.folder("org/big")}).out == place.local());
  CHECK(before.size() == 4);
  for (const fs::path& file : before) CHECK(fs::exists(file));
}

TEST_CASE("cli address folders: two addresses never share an entry") {
  if (!test::reads_addresses()) return;
  const test::HubPlace place;
  fs::create_directories(place.temp / "hub/org/more");
  fs::rename(place.temp / "hub/org/big", place.temp / "hub/org/more/big");
  test::write_sharded_model(place.temp / "hub/org/big", 1 << 19);
  for (const char* name : {"org/big", "org/more/big"}) {
    const test::CliResult result = place.run({"extract", place.folder(name)});
    CHECK_MESSAGE(result.exit_code == 0, result.err);
  }
  CHECK(cached_models(place) == 2);
}

}  // namespace
}  // namespace fp8kv
