// Commands on LongCat Flash, each of whose layers has two caches.
#include <string>

#include <doctest/doctest.h>

#include "checkpoint/checkpoint.h"
#include "json/json.h"
#include "support/workplaces/random_place.h"

namespace fp8kv {

TEST_CASE("cli LongCat: scales come back from the names of both attentions of a layer") {
  const test::RandomPlace place("longcat-flash");
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
  const test::RandomPlace place("longcat-flash");
  const Json plan =
      Json::parse(place.run({"plan", "m", "--kv-cache-dtype", "fp8", "--json"}).out, "stdout");
  CHECK(plan.at("plans")[0].at("bytes_per_token").as_int() == 4 * (24 + 6));
}

}  // namespace fp8kv
