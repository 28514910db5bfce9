// The contents of pages of scales.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "report/pages/scales_html.h"
#include "support/markup.h"
#include "support/sample_report.h"

namespace fp8kv {
namespace {

std::string page(const KvScales& scales) {
  return scales_html(scales, {.name = "Llama",
                              .names = {"models/Llama", "s.json", "Llama-fp8"},
                              .date = "2026-11-22",
                              .tool_version = "1.2.3"});
}

// The texts of all elements of this name.
std::vector<std::string> texts_of(const std::string& html, const std::string& name) {
  std::vector<std::string> texts;
  for (const test::Tag& tag : test::tags_of(html)) {
    if (tag.name == name && !tag.is_end) texts.push_back(tag.text);
  }
  return texts;
}

// The number of body rows in the table that starts with these heads.
size_t rows_under(const std::string& html, const std::string& heads) {
  const size_t head = html.find("<thead><tr>" + heads);
  REQUIRE(head != html.npos);
  const size_t end = html.find("</tbody>", head);
  size_t rows = 0;
  for (size_t at = html.find("<tr>", html.find("<tbody>", head)); at < end;
       at = html.find("<tr>", at + 1)) {
    ++rows;
  }
  return rows;
}

TEST_CASE("page of scales: head, summary and commands") {
  const std::string html = page(test::sample_scales({.layers = 6, .name = ""}));
  CHECK(texts_of(html, "h1") == std::vector<std::string>{"Llama"});
  CHECK(html.find("<p class=\"note\">2026-11-22, fp8kv 1.2.3</p>") != html.npos);
  CHECK(html.find("<section class=\"verdict good\"><p class=\"first\">Scales of 6 layers, one per "
                  "tensor, from 8,192 tokens in 4 windows.</p>\n"
                  "<p>Scales of 1.0 would not have done: ") != html.npos);
  CHECK(texts_of(html, "code") ==
        std::vector<std::string>{"fp8kv inject models/Llama --scales s.json -o Llama-fp8",
                                 "vllm serve Llama-fp8 --kv-cache-dtype fp8"});
  for (const char* outside : {"http:", "https:", "src=", "url(", "@import"}) {
    CAPTURE(outside);
    CHECK(html.find(outside) == html.npos);
  }
}

TEST_CASE("page of scales: a row for each layer, and for K, V and Q of each with a cache") {
  const KvScales scales = test::sample_scales({.layers = 6, .name = ""});
  const std::string html = page(scales);
  const std::string layer = "<th class=\"n\" scope=\"col\">layer</th>";
  const std::string tensor = "<th class=\"n\" scope=\"col\">tensor</th>";
  const std::string verdicts = tensor + "<th class=\"n\" scope=\"col\">verdict</th>";
  const std::string halves = tensor + "<th scope=\"col\">4,096</th>";
  CHECK(rows_under(html, layer + "<th scope=\"col\">K scale</th>") == 6);
  CHECK(rows_under(html, layer + verdicts) == 18);
  CHECK(rows_under(html, layer + halves) == 12);
  // Two charts of ranges, two maps of octaves, and one chart of half of the text.
  CHECK(texts_of(html, "figure").size() == 5);
  KvScales mixed = scales;
  mixed.layers[1] = {};
  for (auto* layers : {&mixed.provenance.amax, &mixed.provenance.parts.back().layers})
    (*layers)[1] = {};
  mixed.provenance.octaves[1] = {};
  const std::string other = page(mixed);
  CHECK(rows_under(other, layer + halves) == 10);
  CHECK(rows_under(other, layer + verdicts) == 16);
  CHECK(other.find("no cache") != other.npos);
}

TEST_CASE("page of scales: nothing about Q without its range, and a sentence with it") {
  KvScales scales = test::sample_scales({.layers = 2, .name = ""});
  scales.provenance.amax[1].q = {1000};
  scales.provenance.octaves[1].q = {0, 9, {100}};
  CHECK(page(scales).find("<p>For attention that computes in FP8: Q saturates at 1.0 in layer 1; "
                          "1.0 is safe in the other layer.</p>") != std::string::npos);
  for (LayerAmax& amax : scales.provenance.amax) amax.q.clear();
  const std::string html = page(scales);
  CHECK(html.find("attention that computes in FP8") == html.npos);
  CHECK(rows_under(html,
                   "<th class=\"n\" scope=\"col\">layer</th>"
                   "<th class=\"n\" scope=\"col\">tensor</th>"
                   "<th class=\"n\" scope=\"col\">verdict</th>") == 4);
}

TEST_CASE("page of scales: medians lie inside their octave, and not above the largest value") {
  KvScales scales = test::sample_scales({.layers = 1, .name = ""});
  LayerOctaves& octaves = scales.provenance.octaves[0];
  octaves.k = {0, 0, {1, 2, 1}};  // half of them below the middle of [2, 4)
  octaves.v = {0, 0, {4}};        // half of them below the middle of [1, 2)
  scales.provenance.amax[0].k = {7};
  scales.provenance.amax[0].v = {1.25f};
  const std::string html = page(scales);
  CHECK(html.find("layer 0: median 2.83<") != html.npos);
  CHECK(html.find("layer 0: median 1.25<") != html.npos);
}

// The number of limits that are drawn over maps.
size_t halos(const std::string& html) {
  size_t count = 0;
  for (size_t at = html.find("class=\"halo\""); at != html.npos;
       at = html.find("class=\"halo\"", at + 1)) {
    ++count;
  }
  return count;
}

TEST_CASE("page of scales: the map of octaves has the limits of FP8 in it") {
  KvScales scales = test::sample_scales({.layers = 1, .name = ""});
  scales.provenance.octaves[0].k = {0, 0, {1, 2, 1}};
  scales.layers[0].k = {2};
  std::string html = page(scales);
  // The rows are the octaves from 2^9, which holds 448 x 2, down to 2^-6: 16 rows of 10, from 26
  // on. 448 lies log2(512 / 448) = 0.193 below 2^9.
  const auto has_line = [&](const char* y, bool dashed) {
    const char* dash = dashed ? " stroke-dasharray=\"4 3\"" : "";
    return html.find(std::string("<path class=\"path\"") + dash + " d=\"M64 " + y +
                     "H788\"/></g>") != html.npos;
  };
  CHECK(has_line("27.93", false));  // 896
  CHECK(has_line("176", false));    // 2^-5
  CHECK(has_line("37.93", true));   // 448
  CHECK(has_line("186", true));     // 2^-6
  CHECK(html.find("largest code, and end of full precision, with these scales</li>") != html.npos);
  CHECK(html.find("<li>share of a layer&#39;s values:</li>") != html.npos);
  const size_t lines = halos(html);
  scales.layers[0].k = {1};
  html = page(scales);
  CHECK_FALSE(has_line("37.93", false));
  CHECK(has_line("28.05", true));  // 15 rows now
  // Limits outside of what is counted have no line.
  scales.layers[0].k = {1e30f};
  html = page(scales);
  CHECK(halos(html) == lines - 2);
}

TEST_CASE("page of scales: of positions only where the rotation changes with the prompt") {
  KvScales scales = test::sample_scales({.layers = 2, .name = ""});
  CHECK(page(scales).find("Which positions were measured?") == std::string::npos);
  scales.provenance.positions = {"longrope", 4096, 131072, {2048}};
  const std::string html = page(scales);
  CHECK(html.find("Which positions were measured?</h2>\n<p>longrope, windows of up to 2048 tokens "
                  "of 131072: K with the short factors alone.</p>") != html.npos);
  CHECK(html.find("<p>prompts beyond 4096 tokens were not measured: ") != html.npos);
}

TEST_CASE("page of scales: what has to be done first stands before the commands") {
  KvScales scales = test::sample_scales({.layers = 2, .name = ""});
  scales.provenance.shards = {4, {1}, 9, 16, 32768};
  const std::string html = page(scales);
  CHECK(html.find("class=\"verdict unsure\"") != html.npos);
  CHECK(html.find("<p>Before that: calibrate the other 3 shards, then fp8kv merge. ") != html.npos);
}

}  // namespace
}  // namespace fp8kv
