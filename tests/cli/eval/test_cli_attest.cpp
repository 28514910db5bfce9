// `attest` with test servers that compute with the demo model in a known cache. They answer like
// vLLM, SGLang and TGI.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "json/json.h"
#include "support/sanitizers.h"
#include "support/says.h"
#include "support/workplaces/attest_place.h"
#include "support/workplaces/hub_place.h"

namespace fp8kv {
namespace {

using test::AttestPlace;
using Change = std::optional<test::HubAnswer>;

// Enough windows to decide every case below.
const std::vector<std::string> kWindows = {"--samples", "24", "--seq-len", "40", "-q"};

using test::says;

test::CliResult attest_with(const AttestPlace& place, std::vector<std::string> more) {
  more.insert(more.end(), kWindows.begin(), kWindows.end());
  return place.run(more);
}

// Runs the command against a server with changed answers.
test::CliResult faulty(const AttestPlace::Change& change, const std::string& key = "") {
  const AttestPlace place("vllm", "these scales", change);
  std::vector<std::string> flags = {"--samples", "8", "-q"};
  if (!key.empty()) flags.insert(flags.end(), {"--api-key-env", "KEY"});
  return place.run(flags, key);
}

bool is_question(const test::HubAsk& ask) {
  return !ask.body.empty();
}

}  // namespace

TEST_CASE("cli attest: each cache is named, in whatever runtime it is") {
  if (!test::reads_addresses()) return;
  struct Case {
    std::string api, cache;
    int exit_code;
  };
  std::vector<Case> cases = {{"vllm", "these scales, rounded towards zero", 0},
                             {"sglang", "a 16-bit cache", 1},
                             {"tgi", "scales of 1.0", 1},
                             {"vllm", "the scales of K and V exchanged", 1},
                             {"vllm", "these scales without layer 1", 1}};
  if (test::kSanitized) cases.resize(1);  // other cases ask the other servers
  for (const Case& each : cases) {
    CAPTURE(each.api);
    CAPTURE(each.cache);
    const AttestPlace place(each.api, each.cache);
    const test::CliResult result = attest_with(place, {});
    CHECK_MESSAGE(place.named(result.out).starts_with("SERVER computes with " + each.cache + "\n"),
                  result.out, result.err);
    CHECK(result.exit_code == each.exit_code);
  }
}

TEST_CASE("cli attest: what a server generates is judged with --decode") {
  if (!test::reads_addresses()) return;
  std::vector<std::string> apis = {"sglang", "tgi", "vllm"};
  if (test::kSanitized) apis.pop_back();
  for (const std::string& api : apis) {
    CAPTURE(api);
    const AttestPlace place(api, "a 16-bit cache");
    const test::CliResult result = attest_with(place, {"--decode", "24", "--json"});
    CHECK_MESSAGE(result.exit_code == 1, result.err);
    const Json found = Json::parse(result.out, "out");
    CHECK(found.at("best").as_string() == "a 16-bit cache");
    CHECK(found.at("answer").as_string().ends_with(" computes with a 16-bit cache"));
    CHECK(found.at("decoded").as_bool());
    CHECK(found.at("windows")[0].at("server").size() == 24);
  }
}

TEST_CASE("cli attest: no more is asked than it takes to decide") {
  if (!test::reads_addresses()) return;
  const AttestPlace place("vllm", "a 16-bit cache");
  const test::CliResult result = attest_with(place, {"--json"});
  const Json found = Json::parse(result.out, "out");
  CHECK(found.at("windows").size() == 8);
  // Three probes, the list of models, and one question per window.
  CHECK(place.server.asked().size() == 12);
}

TEST_CASE("cli attest: too little text leaves it undecided, with an exit code of its own") {
  if (!test::reads_addresses()) return;
  const AttestPlace place("vllm", "these scales");
  const test::CliResult result = place.run({"--samples", "1", "--seq-len", "8", "-q"});
  CHECK(result.exit_code == 4);
  CHECK(place.named(result.out).starts_with("undecided: SERVER computes with a 16-bit cache, "));
  CHECK(says(result.err, "help: give more text with --samples"));
}

TEST_CASE("cli attest: another model is none of the caches") {
  if (!test::reads_addresses()) return;
  const AttestPlace place("vllm", "these scales", [&](const test::HubAsk& ask) -> Change {
    if (!is_question(ask)) return std::nullopt;
    const Json ids = Json::parse(ask.body, "question").at("prompt");
    std::string list = "null";
    for (size_t i = 1; i < ids.size(); ++i) {
      list += cat(", {\"", ids[i].as_int(),
                  "\": {\"logprob\": ", -0.25 * static_cast<double>(1 + i % 9), "}}");
    }
    return test::HubAnswer{200, {}, cat("{\"choices\": [{\"prompt_logprobs\": [", list, "]}]}")};
  });
  const test::CliResult result = attest_with(place, {});
  CHECK(result.exit_code == 1);
  CHECK_MESSAGE(says(result.out, "computes with none of these: another model, or other weights"),
                result.out);
}

TEST_CASE("cli attest: what a server refuses is said with the way out, and the key nowhere") {
  if (!test::reads_addresses()) return;
  struct Refusal {
    test::HubAnswer answer;
    int exit_code;
    std::string said;
  };
  const std::vector<Refusal> refusals = {
      {{401, {}, "{\"error\": \"no key sk-secret\"}"},
       3,
       "the key of --api-key-env is not accepted"},
      {{404, {}, "{\"detail\": \"Not Found\"}"}, 3, "a server that only chats gives no"},
      {{400, {}, "{\"error\": {\"message\": \"sk-secret: too long\"}}"},
       3,
       "HTTP 400: '***: too long'"},
      {{302, {{"Location", "http://elsewhere.test/x"}}, ""},
       3,
       "redirects to 'http://elsewhere.test'"},
      {{429, {{"Retry-After", "3600"}}, ""}, 5, "it asks to wait 3600 s"},
      {{500, {}, "sk-secret"}, 5, "HTTP 500: '***'"},
      {{200, {}, "<html>"}, 3, "the answer is not JSON"},
      {{200, {}, "{\"choices\": [{\"text\": \"x\"}]}"}, 3, "has no prompt_logprobs"},
      {{200, {}, "{\"choices\": [{\"prompt_logprobs\": [null, {\"5\": {\"logprob\": -1}}]}]}"},
       3,
       "token 1 of the prompt is 5 there, expected "},
      {{200, {}, "{\"choi", 3}, 5, "see the server's log"}};
  for (const Refusal& refusal : refusals) {
    CAPTURE(refusal.said);
    const test::CliResult result = faulty(
        [&](const test::HubAsk& ask) {
          return is_question(ask) && ask.nth > 4 ? Change(refusal.answer) : Change();
        },
        "sk-secret");
    CHECK(result.exit_code == refusal.exit_code);
    CHECK_MESSAGE(says(result.err, refusal.said), result.err);
    CHECK_FALSE(says(result.err + result.out, "sk-secret"));
  }
}

TEST_CASE("cli attest: the key goes with every request, and a busy server is asked again") {
  if (!test::reads_addresses()) return;
  const AttestPlace place("vllm", "a 16-bit cache", [](const test::HubAsk& ask) -> Change {
    if (ask.nth % 4 == 1) return test::HubAnswer{429, {{"Retry-After", "0"}}, ""};
    return std::nullopt;
  });
  const test::CliResult result =
      place.run({"--samples", "24", "-q", "--api-key-env", "KEY"}, "sk-secret");
  CHECK_MESSAGE(result.exit_code == 1, result.err);
  for (const test::HubAsk& ask : place.server.asked()) {
    CHECK(ask.authorization == "Bearer sk-secret");
  }
}

TEST_CASE("cli attest: servers that are not known, and command lines that cannot be") {
  if (!test::reads_addresses()) return;
  const test::CliResult unknown = faulty([](const test::HubAsk& ask) {
    return ask.target == "/v1/models" ? Change() : Change({404, {}, ""});
  });
  CHECK(unknown.exit_code == 3);
  CHECK(says(unknown.err, "is not known as vLLM, SGLang or TGI, though it has /v1/models"));
  const AttestPlace place("vllm", "these scales");
  const auto refused = [&](const std::vector<std::string>& flags, int exit_code,
                           const std::string& said) {
    CAPTURE(said);
    const test::CliResult result = place.run(flags);
    CHECK(result.exit_code == exit_code);
    CHECK_MESSAGE(says(result.err, said), result.err);
  };
  refused({"--api-key-env", "NOT_SET"}, 2, "--api-key-env 'NOT_SET': the variable is not set");
  refused({"--served-model-name", "demon"}, 3, "has no model 'demon' (did you mean 'demo'?)");
  refused({"--seq-len", "512"}, 2, "takes 512 tokens, prompt and answer, and a window needs 513");
  refused({"--level", "0"}, 2, "--level");
  const test::CliResult gone = test::run_cli(
      {"attest", "http://127.0.0.1:1", "--model", test::demo_model().string(), "--data",
       (test::source_dir() / "datasets/calibration.txt").string(), "--samples", "2", "-q"},
      place.temp.path());
  CHECK(gone.exit_code == 5);
  CHECK(says(gone.err, "check that the server runs, and its address"));
}

}  // namespace fp8kv
