// The page of tasks: its verdict, its marks, its drawings and its texts.
#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "report/pages/text_pair.h"
#include "report/tasks/answers_html.h"
#include "report/tasks/needle_html.h"
#include "report/tasks/recovery_figure.h"
#include "report/tasks/standings.h"
#include "report/tasks/task_tables.h"
#include "report/tasks/task_verdict.h"
#include "support/markup.h"
#include "support/sample_report.h"
#include "support/sample_tasks.h"

namespace fp8kv {
namespace {

using test::SampleTask;
using test::Tag;

TaskReport task_of(const std::vector<test::SampleCache>& caches, double bound = 0) {
  return test::sample_task({.caches = caches, .bound = bound});
}

std::vector<std::string> verdict_of(const std::vector<TaskReport>& reports) {
  return task_verdict(reports, compare_all(reports)).lines;
}

std::string class_of(const std::vector<TaskReport>& reports) {
  return task_verdict(reports, compare_all(reports)).css_class;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

size_t count_in(const std::string& text, const std::string& part) {
  size_t seen = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++seen;
  return seen;
}

}  // namespace

// The intervals are those that docs/accuracy.md shows for 12 of 12 and 3 of 12.
TEST_CASE("task page: the verdict names what differs, and gives intervals for the rest") {
  const TaskReport both = task_of({{{12, 0, 0, 0}}, {{3, 0, 9, 0}, "nvfp4 unit"}});
  CHECK(class_of({both}) == "bad");
  CHECK(verdict_of({both}) ==
        std::vector<std::string>{
            "nvfp4 unit has fewer items right than bfloat16, beyond chance. These items do not "
            "tell fp8_e4m3 unit from bfloat16: the 95 % intervals of recovery reach from 85.3 % "
            "(fp8_e4m3 unit) to 117.2 %.",
            "These items do not tell fp8_e4m3 unit from bfloat16 (p = 1): recovery is 100.0 % (95 "
            "% interval 85.3 % to 117.2 %).",
            "nvfp4 unit has fewer items right than bfloat16, beyond chance (p = 0.0039): recovery "
            "is 25.0 % (95 % interval 9.6 % to 65.2 %).",
            "Measured on 12 items of choices."});
  const TaskReport alone = task_of({{{12, 0, 0, 0}}});
  CHECK(class_of({alone}) == "unsure");
  CHECK(verdict_of({alone})[0].starts_with("These items do not tell fp8_e4m3 unit from bfloat16"));
  CHECK(verdict_of({alone, alone})[0] ==
        "These items tell no cache from bfloat16: the 95 % intervals of recovery reach from 85.3 % "
        "(fp8_e4m3 unit on choices) to 117.2 %.");
  CHECK(verdict_of({both, alone})[0] ==
        "nvfp4 unit on choices has fewer items right than bfloat16, beyond chance. These items "
        "leave 2 other comparisons open: the 95 % intervals of recovery reach from 85.3 % "
        "(fp8_e4m3 unit on choices) to 117.2 %.");
  CHECK(verdict_of({task_of({{{0, 0, 0, 9}}})})[0] ==
        "fp8_e4m3 unit cannot be compared: bfloat16 has no item right.");
  CHECK(verdict_of({task_of({})})[0] == "No cache was compared.");
}

TEST_CASE("task page: many caches are counted in the headline, and have lines if they differ") {
  std::vector<test::SampleCache> caches(9, {{2, 0, 10, 0}, "nvfp4"});
  caches.resize(15, {{12, 0, 0, 0}});
  const std::vector<std::string> lines = verdict_of({task_of(caches)});
  CHECK(lines[0].starts_with(
      "In 9 comparisons a cache has fewer items right than bfloat16, beyond chance. These items "
      "leave 6 other comparisons open: "));
  REQUIRE(lines.size() == 11);
  CHECK(lines[9].starts_with("nvfp4 has fewer items right than bfloat16"));
  const std::string html = flipped_choices(task_of(caches));
  CHECK(holds(html, "<dt>nvfp4, nvfp4, nvfp4 and 6 others</dt>"));
}

TEST_CASE("task page: with --accept the verdict is the test's") {
  const TaskReport report = task_of(
      {{{990, 5, 5, 0}}, {{600, 5, 395, 0}, "nvfp4 unit"}, {{975, 5, 20, 0}, "fp8_e5m2"}}, 0.98);
  REQUIRE(report.caches[0].test->decision() == Decision::accepted);
  REQUIRE(report.caches[1].test->decision() == Decision::refused);
  REQUIRE(report.caches[2].test->decision() == Decision::open);
  const std::vector<std::string> lines = verdict_of({report});
  CHECK(class_of({report}) == "bad");
  CHECK(lines[0] ==
        cat("Recovery of at least 98 %, with 95 % confidence: accepted fp8_e4m3 unit after ",
            report.caches[0].test->items(), " items; refused nvfp4 unit after ",
            report.caches[1].test->items(), " items; not decided fp8_e5m2 after 1,000 items."));
  CHECK(lines[1].starts_with(cat("fp8_e4m3 unit is accepted: recovery is at least 98 %, after ",
                                 report.caches[0].test->items(),
                                 " of 1,000 items. On these items ")));
  CHECK(lines[2].starts_with(cat("nvfp4 unit is refused: recovery is below 98 %, after ",
                                 report.caches[1].test->items(), " of 1,000 items.")));
  CHECK(lines[3].starts_with("fp8_e5m2 is not decided at 98 % after all 1,000 items; "));
  // A test that stopped early has no valid p, so the cache has no mark.
  const std::vector<TaskReport> reports = {report};
  const std::vector<CacheComparison> comparisons = compare_all(reports);
  CHECK(comparisons[1].standing == Standing::stopped);
  CHECK(holds(standing_note(comparisons), "“stopped” means"));
  const std::string table = task_table(reports[0], comparisons);
  CHECK(holds(table, cat("refused after ", report.caches[1].test->items())));
}

// McNemar's p of 0 wins and n losses is 2^(1 - n).
TEST_CASE("task page: marks are corrected for the number of comparisons") {
  const auto standings = [](const std::vector<test::SampleCache>& caches) {
    const std::vector<TaskReport> reports = {task_of(caches)};
    std::vector<Standing> found;
    for (const CacheComparison& each : compare_all(reports)) found.push_back(each.standing);
    return found;
  };
  const test::SampleCache six = {{20, 0, 6, 4}}, seven = {{19, 0, 7, 4}}, equal = {{26, 0, 0, 4}};
  CHECK(standings({six}) == std::vector{Standing::worse});            // 1/32
  CHECK(standings({six, equal})[0] == Standing::not_shown);           // 2/32
  CHECK(standings({seven, equal})[0] == Standing::worse);             // 2/64
  CHECK(standings({six, seven}) == std::vector(2, Standing::worse));  // 1/32, 2/64
  CHECK(standings({six, seven, equal})[1] == Standing::worse);        // 3/64
  CHECK(standings({six, seven, equal})[0] == Standing::not_shown);    // 2/32
  CHECK(standings({{{20, 7, 0, 3}}}) == std::vector{Standing::better});
}

TEST_CASE("task page: texts part between characters, and at the end of the shorter one") {
  CHECK(parting_place("abc", "abd") == 2);
  CHECK(parting_place("ab", "abc") == 2);
  CHECK(parting_place("\xC3\xA9", "\xC3\xA8") == 0);
  CHECK(parting_place("x\xE2\x82\xAC", "x\xE2\x82\xAD") == 1);
  CHECK(parting_place("", "") == 0);
}

TEST_CASE("task page: a text stands beside the baseline's, marked where it parts") {
  TaskReport report = test::sample_task({.caches = {{{2, 0, 1, 0}}}, .generates = true});
  const size_t lost =
      static_cast<size_t>(std::ranges::find(report.caches[0].answers, 0,
                                            [](const auto& each) { return each.right[0]; }) -
                          report.caches[0].answers.begin());
  const std::string html = parted_texts(report);
  CHECK(count_in(html, "<div class=\"pair\">") == 1);
  CHECK(holds(html, cat("<span class=\"common\">So the sum is\nfirst ", lost,
                        " 4</span><mark>2.</mark>\nThe end")));
  CHECK(holds(html, "4</span><mark>3.</mark>\nThe end"));
  CHECK(holds(html, "right: right; the texts part at token 3"));
  CHECK(holds(html, "cut off by the token limit"));
  report.caches[0].answers[lost].generated->text =
      report.baseline.answers[lost].generated->text.substr(0, 13);
  CHECK(holds(parted_texts(report),
              "<span class=\"common\">So the sum is</span><mark class=\"end\">ends here</mark>"));
  CHECK(flipped_choices(report) == "");
}

TEST_CASE("task page: items that flipped with the most caches come first, eight at most") {
  const TaskReport report = task_of({{{40, 0, 12, 0}}, {{51, 0, 1, 0}, "nvfp4 unit"}});
  const std::string html = flipped_choices(report);
  CHECK(holds(html, "8 of 12 such items"));
  CHECK(count_in(html, "<h4>") == 8);
  const std::string first = html.substr(0, html.find("<h4>", html.find("<h4>") + 1));
  CHECK(
      holds(first, "<dt>bfloat16 (baseline)</dt><dd><span class=\"badge good\">right</span> the "));
  CHECK(holds(first, "<dt>fp8_e4m3 unit and nvfp4 unit</dt><dd><span class=\"badge bad\">wrong</"));
  CHECK(parted_texts(report) == "");
  CHECK(flipped_choices(task_of({{{5, 0, 0, 2}}})) == "");
}

TEST_CASE("task page: intervals of all tasks stand on one axis") {
  const std::vector<TaskReport> reports = {task_of({{{12, 0, 0, 0}}, {{3, 0, 9, 0}, "nvfp4"}}, 0.9),
                                           task_of({{{50, 1, 2, 7}}}, 0.9)};
  const std::string html = recovery_figure(reports, compare_all(reports));
  const std::vector<Tag> tags = test::tags_of(html);
  std::vector<std::pair<double, double>> ticks;  // share and x
  std::vector<double> markers;
  for (const Tag& tag : tags) {
    if (tag.name == "circle" && !tag.is_end) markers.push_back(std::stod(tag.attributes.at("cx")));
    if (tag.name != "text" || tag.is_end || tag.attributes.at("text-anchor") != "middle") continue;
    if (tag.text.ends_with(" %") && std::isdigit(static_cast<unsigned char>(tag.text[0]))) {
      ticks.emplace_back(std::stod(tag.text) / 100, std::stod(tag.attributes.at("x")));
    }
  }
  REQUIRE(ticks.size() >= 2);
  const auto [low, low_x] = ticks.front();
  const auto [high, high_x] = ticks.back();
  const auto x_of = [&, a = low, b = low_x, c = high, d = high_x](double share) {
    return b + (share - a) / (c - a) * (d - b);
  };
  REQUIRE(markers.size() == 3);
  CHECK(markers[0] == doctest::Approx(x_of(1)).epsilon(0.001));
  CHECK(markers[1] == doctest::Approx(x_of(0.25)).epsilon(0.001));
  CHECK(markers[2] == doctest::Approx(x_of(51.0 / 52)).epsilon(0.001));
  CHECK(holds(html, "bound 90 %"));
  CHECK(holds(html,
              "<title>nvfp4, choices: items.jsonl: recovery 25.0 %, 95 % interval 9.6 % to "
              "65.2 %"));
  CHECK(recovery_figure({}, {}) == "");
}

TEST_CASE("task page: cells of needles have their counts, and a shade by the share found") {
  // The second cache misses 0, 1, 2 and 3 of four samples.
  const TaskReport report = test::sample_needles(2, 2, {NeedleKind::single});
  const std::string html = needle_pictures(report);
  CHECK(count_in(html, "<table class=\"heat\">") == 3);
  const std::string second = html.substr(html.find("nvfp4 unit, single"));
  CHECK(holds(second,
              "<th scope=\"row\">0&nbsp;%</th><td class=\"h3\">4 of 4</td>"
              "<td class=\"h2\">2 of 4</td>"));
  CHECK(holds(second,
              "<th scope=\"row\">100&nbsp;%</th><td class=\"h2\">3 of 4</td>"
              "<td class=\"h1\">1 of 4</td>"));
  CHECK(needle_pictures(task_of({{{5, 0, 0, 2}}})) == "");
}

TEST_CASE("task page: hostile prompts, answers and names are words") {
  const auto page = [](const std::string& name) {
    for (const auto& [sample, html] : test::sample_pages()) {
      if (sample == name) return html;
    }
    return std::string();
  };
  const auto skeleton = [](const std::string& html) {
    std::vector<std::string> parts;
    for (const Tag& tag : test::tags_of(html)) {
      std::string part = (tag.is_end ? "/" : "") + tag.name;
      for (const auto& [name, value] : tag.attributes) part += " " + name;
      parts.push_back(part);
    }
    return parts;
  };
  const std::string html = page("tasks-hostile");
  CHECK(skeleton(html) == skeleton(page("tasks-harmless")));
  for (const char* raw : {"<script>alert", "onerror=alert(2)>", "\x01", "\x1b", "\xff",
                          "\xe2\x80\xae", "</title></style>"}) {
    CAPTURE(raw);
    CHECK(!holds(html, raw));
  }
  CHECK(count_in(html, "&lt;script&gt;alert(1)") > 20);
}

}  // namespace fp8kv
