// Commands on LongCat Flash, each of whose layers has two caches.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "checkpoint/checkpoint.h"
#include "json/json.h"
#include "support/models/family_model.h"
#include "support/models/random_model.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

// A random model with the config of a golden, and two windows of tokens.
struct LongcatPlace {
  LongcatPlace() {
    JsonWriter config;
    config.value(test::family_golden("longcat-flash").at("config"));
    test::write_random_model(folder / "m", config.text());
    for (int line = 0; line < 2; ++line) {
      std::string ids;
      for (int i = 0; i < 60; ++i) ids += cat(i == 0 ? "" : ", ", 3 + (line + i) * 31 % 74);
      data += "{\"input_ids\": [" + ids + "]}\n";
    }
    folder.write("d.jsonl", data);
  }
  test::CliResult run(const std::vector<std::string>& arguments) const {
    return test::run_cli(arguments, folder.path());
  }

  test::TempDir folder;
  std::string data;
};

}  // namespace

TEST_CASE("cli LongCat: scales come back from the names of both attentions of a layer") {
  const LongcatPlace place;
  CHECK(place.run({"calibrate", "m", "--data", "d.jsonl", "-o", "m.json"}).exit_code == 0);
  CHECK(place.run({"inject", "m", "--scales", "m.json", "-o", "m-fp8"}).exit_code == 0);
  const Checkpoint injected = Checkpoint::open(place.folder / "m-fp8");
  for (const char* name :
       {"model.layers.0.self_attn.0.k_proj.k_scale", "model.layers.0.self_attn.1.v_proj.v_scale",
        "model.layers.1.self_attn.1.k_proj.k_scale"}) {
    CAPTURE(name);
    CHECK(injected.find(name) != nullptr);
  }
  CHECK(place.run({"extract", "m-fp8", "-o", "back.json"}).exit_code == 0);
  const test::CliResult diff = place.run({"diff", "m.json", "back.json"});
  CAPTURE(diff.out);
  CHECK(diff.exit_code == 0);
  CHECK(place.run({"eval", "m-fp8", "--data", "d.jsonl", "-q", "--greedy-tokens", "4"}).exit_code ==
        0);
}

TEST_CASE("cli LongCat: plan counts two caches for each layer of config.json") {
  const LongcatPlace place;
  const Json plan =
      Json::parse(place.run({"plan", "m", "--kv-cache-dtype", "fp8", "--json"}).out, "stdout");
  CHECK(plan.at("plans")[0].at("bytes_per_token").as_int() == 4 * (24 + 6));
}

}  // namespace fp8kv
