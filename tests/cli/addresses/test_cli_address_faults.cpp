// Servers that refuse, fail, lie or change. Each gives an error that names the cause, or a few
// retries.
#include <atomic>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/says.h"
#include "support/workplaces/hub_place.h"

namespace fp8kv {
namespace {

using Answer = std::optional<test::HubAnswer>;

using test::says;

// Runs extract on a hub with these answers.
test::CliResult extract(const test::HubServer::InPlace& in_place) {
  const test::HubPlace place(in_place);
  return place.run({"extract", "hf://org/big"});
}

bool is_config(const test::HubAsk& ask) {
  return ask.target.ends_with("/config.json");
}

}  // namespace

TEST_CASE("cli address faults: refusals of the hub are told apart") {
  if (!test::reads_addresses()) return;
  struct Refusal {
    int status;
    std::map<std::string, std::string> headers;
    int exit_code;
    std::string said;
  };
  const std::vector<Refusal> refusals = {
      {401,
       {{"X-Error-Code", "RepoNotFound"}},
       3,
       "the hub has no such model, or does not show it"},
      {403, {{"X-Error-Code", "GatedRepo"}}, 3, "is gated, and may not be read"},
      {403, {}, 3, "may not be read by the account of this token"},
      {404, {{"X-Error-Code", "RevisionNotFound"}}, 3, "has no revision 'main'"},
      {404, {{"X-Error-Code", "EntryNotFound"}}, 3, "config.json: the hub has no such file"},
      {416, {}, 5, "HTTP 416 from 127.0.0.1"},
      {418, {}, 5, "HTTP 418 from 127.0.0.1"},
      {429, {{"Retry-After", "3600"}}, 5, "Retry-After: 3600"},
      {302, {{"Location", "/again"}}, 3, "redirects in a circle"},
      {302, {{"Location", "gopher://x"}}, 3, "redirects to what is no address"},
      {302, {}, 3, "redirects to what is no address"}};
  for (const Refusal& refusal : refusals) {
    CAPTURE(refusal.said);
    const test::CliResult result = extract([&](const test::HubAsk&) {
      return Answer({refusal.status, refusal.headers});
    });
    CHECK(result.exit_code == refusal.exit_code);
    CHECK_MESSAGE(says(result.err, refusal.said), result.err);
    CHECK_FALSE(says(result.err, "hf_secret"));
  }
}

TEST_CASE("cli address faults: what passes is tried again, four times at most") {
  if (!test::reads_addresses()) return;
  for (const int status : {429, 500, 502, 503, 504}) {
    CAPTURE(status);
    const test::HubAnswer fault{status, {{"Retry-After", "0"}}};
    const test::CliResult passed =
        extract([&](const test::HubAsk& ask) { return ask.nth < 3 ? Answer(fault) : Answer(); });
    CHECK_MESSAGE(passed.exit_code == 0, passed.err);
    const test::CliResult stayed = extract([&](const test::HubAsk&) { return Answer(fault); });
    CHECK(stayed.exit_code == 5);
    CHECK(says(stayed.err, "(tried 4 times)"));
  }
}

TEST_CASE("cli address faults: a connection that is cut is made again") {
  if (!test::reads_addresses()) return;
  const test::HubPlace place([](const test::HubAsk& ask) {
    if (ask.nth != 0) return Answer();
    return Answer({200, {}, "{\"a\": 1}", 3});
  });
  const test::CliResult result = place.run({"extract", "hf://org/big"});
  CHECK_MESSAGE(result.exit_code == 0, result.err);
  CHECK(result.out == place.local());
}

TEST_CASE("cli address faults: a server that ignores ranges is named, and not read") {
  if (!test::reads_addresses()) return;
  const test::CliResult result = extract([](const test::HubAsk& ask) {
    if (!ask.target.starts_with("/storage/")) return Answer();
    return Answer({200, {}, std::string(1 << 20, 'x'), 1000});
  });
  CHECK(result.exit_code == 3);
  CHECK(says(result.err, "localhost sends whole files where a part is asked for"));
}

TEST_CASE("cli address faults: a file that changes between two parts is noticed") {
  if (!test::reads_addresses()) return;
  const test::HubServer* server = nullptr;
  const test::HubPlace place([&](const test::HubAsk& ask) {
    if (!ask.target.starts_with("/storage/") || ask.range.starts_with("bytes=0-")) return Answer();
    test::HubAnswer answer = server->answer(ask);
    answer.headers["ETag"] = "\"another\"";
    return Answer(answer);
  });
  server = &place.server;
  const test::CliResult result = place.run({"extract", "hf://org/big"});
  CHECK(result.exit_code == 3);
  CHECK_MESSAGE(says(result.err, "changed while it was read: its ETag is another one"), result.err);
}

TEST_CASE("cli address faults: a signed URL that ran out is asked for again") {
  if (!test::reads_addresses()) return;
  std::atomic<int> refused = 0;
  const test::HubPlace place([&](const test::HubAsk& ask) {
    const bool second = ask.target.starts_with("/storage/") && !ask.range.starts_with("bytes=0-");
    return second && refused++ == 0 ? Answer(test::HubAnswer{403}) : Answer();
  });
  const test::CliResult result = place.run({"extract", "hf://org/big"});
  CHECK_MESSAGE(result.out == place.local(), result.err);
  CHECK(place.server.asked().size() == 18);
}

TEST_CASE("cli address faults: lengths are bounded before memory is taken") {
  if (!test::reads_addresses()) return;
  const test::CliResult config = extract([](const test::HubAsk& ask) {
    return is_config(ask) ? Answer({200, {}, std::string(17 << 20, ' '), 100}) : Answer();
  });
  CHECK(config.exit_code == 3);
  CHECK_MESSAGE(says(config.err, "config.json: is longer than the 16.0 MiB"), config.err);
  const test::CliResult header = extract([](const test::HubAsk& ask) {
    if (!ask.target.starts_with("/storage/")) return Answer();
    std::string head(512, '\xff');
    return Answer({206, {{"Content-Range", "bytes 0-511/512"}}, head});
  });
  CHECK(header.exit_code == 3);
  CHECK_MESSAGE(says(header.err, "is not a safetensors file"), header.err);
}

TEST_CASE("cli address faults: no redirect of a public hub leads into a private network") {
  if (!test::reads_addresses()) return;
  for (const char* target : {"http://127.0.0.1:9/x", "http://127.1:9/x", "http://[::1]:9/x"}) {
    CAPTURE(std::string(target));
    // The server acts as a proxy for a host whose name is public.
    const test::HubPlace place([&](const test::HubAsk&) {
      return Answer({302, {{"Location", target}}});
    });
    const test::CliResult result =
        place.run({"extract", "hf://org/big"},
                  {"HF_ENDPOINT=http://hub.example", "http_proxy=" + place.server.endpoint()});
    CHECK(result.exit_code == 3);
    CHECK_MESSAGE(says(result.err, "to an address of a private network"), result.err);
    CHECK(place.server.asked().size() == 1);
  }
}

TEST_CASE("cli address faults: an interrupt ends it at once") {
  if (!test::reads_addresses()) return;
  std::promise<void> over;
  const std::shared_future<void> wait = over.get_future().share();
  const test::HubPlace place([wait](const test::HubAsk&) {
    wait.wait();
    return Answer(test::HubAnswer{503});
  });
  test::CliSetup setup = place.setup();
  setup.interrupt_when = [&](const test::CliResult&) { return !place.server.asked().empty(); };
  const test::CliResult result = test::run_cli({"extract", "hf://org/big", "-o", "s.json"}, setup);
  over.set_value();
  CHECK(result.exit_code == 130);
  CHECK_FALSE(std::filesystem::exists(place.temp / "s.json"));
}

}  // namespace fp8kv
