#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "json/json.h"
#include "policy/make_scales.h"
#include "report/positions_words.h"
#include "scales/scale_file.h"
#include "support/expect_error.h"

namespace fp8kv {
namespace {

using Strings = std::vector<std::string>;

const std::string kReach =
    "the same keys turned otherwise reach up to 1.41 times the amax of K (--headroom 2)";

// The note of add_run for a model with this rope, after windows of at most `longest_window` tokens.
PositionsNote note_of(const RopeConfig& rope, uint64_t longest_window) {
  ModelConfig config;
  config.max_seq_len = 4096;
  config.ropes = {RopeConfig{}, rope};
  KvScales scales;
  CountedRun run;
  run.longest_window = longest_window;
  add_run(config, run, scales);
  return scales.provenance.positions;
}

RopeConfig rope_of(RopeScaling scaling) {
  RopeConfig rope;
  rope.scaling = scaling;
  rope.original_context = 512;
  return rope;
}

}  // namespace

TEST_CASE("positions: longrope measured within the original context says what is left, and how") {
  const PositionsNote note = note_of(rope_of(RopeScaling::longrope), 512);
  CHECK(note == PositionsNote{"longrope", 512, 4096, {512}});
  CHECK(unmeasured_positions(note) == "prompts beyond 512 tokens");
  CHECK(positions_lines(note) ==
        Strings{"longrope, windows of up to 512 tokens of 4096: K with the short factors alone",
                "prompts beyond 512 tokens were not measured: " + kReach,
                "to measure them, calibrate other text with --seq-len above 512, and merge the "
                "two"});
}

TEST_CASE("positions: a longrope run with one longer window measured the long factors alone") {
  const PositionsNote note = note_of(rope_of(RopeScaling::longrope), 513);
  CHECK(unmeasured_positions(note) == "prompts of up to 512 tokens");
  CHECK(positions_lines(note) ==
        Strings{"longrope, windows of up to 513 tokens of 4096: K with the long factors alone",
                "prompts of up to 512 tokens were not measured: " + kReach,
                "to measure them, calibrate other text with --seq-len 512, and merge the two"});
}

TEST_CASE("positions: longrope measured in both ways leaves nothing") {
  const PositionsNote note{"longrope", 512, 4096, {256, 1024}};
  CHECK(unmeasured_positions(note).empty());
  CHECK(positions_lines(note) == Strings{"longrope, windows of up to 256 and 1024 tokens of 4096: "
                                         "K with the short factors and with the long ones"});
}

TEST_CASE("positions: yarn's factor is in K wherever it was measured") {
  CHECK(positions_lines(note_of(rope_of(RopeScaling::yarn), 256)) ==
        Strings{"yarn, windows of up to 256 tokens of 4096: its factor multiplies K at every "
                "position",
                "positions from 256 on were not measured: " + kReach});
  const PositionsNote whole = note_of(rope_of(RopeScaling::yarn), 4096);
  CHECK(unmeasured_positions(whole).empty());
  CHECK(positions_lines(whole).size() == 1);
}

TEST_CASE("positions: a base that grows beyond the context is not measured there") {
  RopeConfig dynamic;
  dynamic.base_grows = true;
  CHECK(positions_lines(note_of(dynamic, 4096)) ==
        Strings{"dynamic, windows of up to 4096 tokens of 4096: K with the base of the context",
                "prompts beyond 4096 tokens were not measured: " + kReach});
}

TEST_CASE("positions: of other rotations, and where windows are not known, there is no word") {
  for (const RopeScaling scaling : {RopeScaling::none, RopeScaling::linear, RopeScaling::llama3}) {
    CHECK(note_of(rope_of(scaling), 256) == PositionsNote{});
  }
  CHECK(note_of(rope_of(RopeScaling::yarn), 0) == PositionsNote{});
  CHECK(positions_lines({}).empty());
  CHECK(unmeasured_positions({}).empty());
}

TEST_CASE("positions: a scale file keeps them, and only a rising list of windows") {
  KvScales scales;
  scales.model_type = "phi3";
  scales.layers = {{{0.5f}, {0.25f}}};
  scales.provenance.windows = 2;
  scales.provenance.positions = {"longrope", 4096, 131072, {256, 8192}};
  const std::string text = scale_file_text(scales);
  const auto read = [](const std::string& file) {
    return parse_scale_file(Json::parse(file, "s.json"), "'s.json'").provenance.positions;
  };
  CHECK(read(text) == scales.provenance.positions);
  const std::string list = "[256, 8192]";
  for (const auto& [wrong, found] : {std::pair<std::string, std::string>{
                                         "[8192, 256]", "is [8192, 256], expected rising numbers"},
                                     {"[]", "expected one number or more"}}) {
    std::string edited = text;
    REQUIRE(edited.find(list) != edited.npos);
    edited.replace(edited.find(list), list.size(), wrong);
    const std::string error = test::error_of([&] { read(edited); });
    CHECK(error.find(found) != error.npos);
  }
}

}  // namespace fp8kv
