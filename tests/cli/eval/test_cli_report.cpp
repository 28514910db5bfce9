// eval --report and --plot: the page as a browser receives it.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "support/markup.h"
#include "support/models/tiny_checkpoint.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

// A model in a folder with a hostile name, and its report.
struct Reported {
  test::TempDir temp;
  std::string model = "a<b>&\"c";

  Reported() {
    test::write_tiny_checkpoint(temp / model, test::tiny_config());
    std::string lines;
    for (int i = 0; i < 3; ++i) {
      std::string ids;
      for (int j = 0; j < 40; ++j) ids += cat(j == 0 ? "" : ", ", (i * 17 + j * 29 + 3) % 64);
      lines += cat("{\"input_ids\": [", ids, "]}\n");
    }
    temp.write("ids.jsonl", lines);
  }

  // Runs eval with SOURCE_DATE_EPOCH at `seconds`.
  test::CliResult eval(const std::string& report, const std::string& seconds = "1709164800") const {
    return test::run_cli({"eval", model, "--data", "ids.jsonl", "--policy", "amax,unit", "--report",
                          report, "--plot", "-q"},
                         {.folder = temp.path(), .environment = {"SOURCE_DATE_EPOCH=" + seconds}});
  }
};

}  // namespace

TEST_CASE("cli report: one page that is well formed, escaped and asks for nothing outside") {
  const Reported world;
  const test::CliResult result = world.eval("r.html");
  CHECK(result.exit_code == 0);
  const std::string html = test::read_file(world.temp / "r.html");
  CHECK(html.starts_with("<!DOCTYPE html>"));
  CHECK(test::unbalanced(html) == "");
  for (const char* outside : {"http:", "https:", "src=", "url(", "@import"}) {
    CAPTURE(outside);
    CHECK(html.find(outside) == html.npos);
  }
  CHECK(html.find("a&lt;b&gt;&amp;") != html.npos);
  CHECK(html.find("a<b>") == html.npos);
  CHECK(html.find("<svg") != html.npos);
  CHECK(html.find("prefers-color-scheme") != html.npos);
}

TEST_CASE("cli report: the page bears the day of SOURCE_DATE_EPOCH, or else today") {
  const Reported world;
  const auto today = [] {
    const std::time_t now = std::time(nullptr);
    char text[16];
    std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
    return cat("<p class=\"note\">", text, ", fp8kv ");
  };
  ::unsetenv("SOURCE_DATE_EPOCH");
  const std::string before = today();
  test::run_cli({"eval", world.model, "--data", "ids.jsonl", "--report", "now.html", "-q"},
                world.temp.path());
  const std::string now = test::read_file(world.temp / "now.html");
  CHECK((now.find(before) != now.npos || now.find(today()) != now.npos));
  // The first and the last second of 2024-02-29.
  world.eval("first.html", "1709164800");
  world.eval("last.html", "1709251199");
  const std::string first = test::read_file(world.temp / "first.html");
  CHECK(first.find("<p class=\"note\">2024-02-29, fp8kv ") != first.npos);
  CHECK(test::read_file(world.temp / "last.html") == first);
  for (const char* wrong : {"", "-1", "soon", "1.5", "253402300800"}) {
    CAPTURE(wrong);
    const test::CliResult refused = world.eval("wrong.html", wrong);
    CHECK(refused.exit_code == 2);
    CHECK(refused.err == cat("fp8kv: eval: SOURCE_DATE_EPOCH is '", wrong,
                             "', expected seconds since 1970\nhelp: set it to a whole number such "
                             "as 1735689600, or unset it\n"));
    CHECK(!std::filesystem::exists(world.temp / "wrong.html"));
  }
}

TEST_CASE("cli report: the same run gives the same bytes, and an existing page is refused first") {
  const Reported world;
  world.eval("one.html");
  world.eval("two.html");
  CHECK(test::read_file(world.temp / "one.html") == test::read_file(world.temp / "two.html"));
  const test::CliResult again = world.eval("one.html");
  CHECK(again.exit_code == 3);
  CHECK(again.out == "");
  CHECK(again.err.starts_with("fp8kv: eval: 'one.html': already exists\n"));
}

TEST_CASE("cli report: page and text certify the candidate nearest to the baseline") {
  const Reported world;
  const std::string out = test::run_cli({"eval", world.model, "--data", "ids.jsonl", "--policy",
                                         "amax*0.05,amax", "--report", "r.html", "--table", "-q"},
                                        world.temp.path())
                              .out;
  CHECK(out.find("\nfp8_e4m3 amax: are its scales safe for the evaluated text?\n") != out.npos);
  CHECK(
      out.ends_with("fp8_e4m3 amax*0.05: its scales lose values that were seen in layers 0 and "
                    "1\n"));
  const std::string html = test::read_file(world.temp / "r.html");
  CHECK(html.find("Margins in octaves with the scales of fp8_e4m3 amax ") != html.npos);
}

TEST_CASE("cli report: the page's commands run, and inject names the same one to serve with") {
  const test::TempDir temp;
  const std::filesystem::path datasets = test::source_dir() / "datasets";
  std::filesystem::create_directory_symlink(datasets / "demo", temp / "MODEL-FOLDER");
  const std::string text = (datasets / "calibration.txt").string();
  const auto run = [&](std::vector<std::string> arguments) {
    const test::CliResult result = test::run_cli(arguments, temp.path());
    INFO(result.err);
    CHECK(result.exit_code == 0);
    return result.out;
  };
  run({"eval", "MODEL-FOLDER", "--data", text, "--seq-len", "64", "--samples", "20", "--policy",
       "amax", "--greedy-tokens", "0", "--report", "r.html", "-q"});
  std::vector<std::string> commands;
  for (const test::Tag& tag : test::tags_of(test::read_file(temp / "r.html"))) {
    if (tag.name == "code" && !tag.is_end) commands.push_back(tag.text);
  }
  REQUIRE(commands.size() == 3);
  const auto words_of = [](const std::string& command) {
    REQUIRE(command.starts_with("fp8kv "));
    std::istringstream words(command.substr(6));
    return std::vector<std::string>{std::istream_iterator<std::string>(words), {}};
  };
  std::vector<std::string> calibrate = words_of(commands[0]);
  CHECK(std::find(calibrate.begin(), calibrate.end(), text) != calibrate.end());
  calibrate.insert(calibrate.end(), {"--seq-len", "64", "--samples", "20", "-q"});
  run(calibrate);
  const std::string said = run(words_of(commands[1]));
  CHECK(said.find("\n  " + commands[2] + "\n") != said.npos);
}

TEST_CASE("cli report: calibrate and inspect write a page of the scales, whose commands run") {
  const test::TempDir temp;
  const std::filesystem::path datasets = test::source_dir() / "datasets";
  std::filesystem::create_directory_symlink(datasets / "demo", temp / "tiny model");
  const auto run = [&](std::vector<std::string> arguments) {
    const test::CliResult result = test::run_cli(
        arguments,
        test::CliSetup{.folder = temp.path(), .environment = {"SOURCE_DATE_EPOCH=1709164800"}});
    INFO(result.err);
    CHECK(result.exit_code == 0);
    return result.out;
  };
  const std::string shown =
      run({"calibrate", "tiny model", "--data", (datasets / "calibration.txt").string(),
           "--seq-len", "64", "--samples", "20", "-o", "s.json", "--report", "made.html", "-q"});
  const std::string html = test::read_file(temp / "made.html");
  CHECK(test::unbalanced(html) == "");
  CHECK(html.find("<h1>tiny model</h1>\n<p class=\"note\">2024-02-29, fp8kv ") != html.npos);
  std::vector<std::string> commands;
  for (const test::Tag& tag : test::tags_of(html)) {
    if (tag.name == "code" && !tag.is_end) commands.push_back(tag.text);
  }
  REQUIRE(commands.size() == 2);
  CHECK(commands[0] ==
        "fp8kv inject &#39;tiny model&#39; --scales s.json -o &#39;tiny model-fp8&#39;");
  CHECK(shown.find("\nnext      fp8kv inject 'tiny model' --scales s.json -o 'tiny model-fp8'\n") !=
        shown.npos);
  const std::string said =
      run({"inject", "tiny model", "--scales", "s.json", "-o", "tiny model-fp8", "-q"});
  CHECK(commands[1] == "vllm serve &#39;tiny model-fp8&#39; --kv-cache-dtype fp8");
  CHECK(said.find("\n  vllm serve 'tiny model-fp8' --kv-cache-dtype fp8\n") != said.npos);

  // inspect of the scale file alone gives the same page, except for the name of the model.
  const std::string described = run({"inspect", "s.json"});
  CHECK(run({"inspect", "s.json", "--report", "seen.html"}) == described);
  const std::string seen = test::read_file(temp / "seen.html");
  CHECK(seen.find("<h1>s.json</h1>") != seen.npos);
  const auto below = [](const std::string& page) {
    return page.substr(page.find("<h2 id=\"certificate\">"));
  };
  CHECK(below(seen) == below(html));
}

TEST_CASE(
    "cli report: a page of scales is refused where it cannot be made, and nothing is printed") {
  const test::TempDir temp;
  temp.write("v.json", R"({"model_type": "llama", "kv_cache": {"dtype": "float8_e4m3fn",
                           "scaling_factor": {"0": {"0": 0.5}}}})");
  temp.write("old.html", "old");
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& err) {
    const test::CliResult result = test::run_cli(arguments, temp.path());
    CHECK(result.exit_code >= 2);
    CHECK(result.out == "");
    CHECK(result.err.starts_with("fp8kv: inspect: " + err));
  };
  refused({"inspect", "v.json", "--report", "r.html"},
          "'v.json': has scales, but not the magnitudes that they were made from");
  refused({"inspect", "v.json", "--report", "old.html"}, "'old.html': already exists");
  refused({"inspect", "v.json", "--report", "v.json", "-f"},
          "--report and PATH are the same file: ");
  CHECK(!std::filesystem::exists(temp / "r.html"));
  CHECK(test::read_file(temp / "old.html") == "old");
}

TEST_CASE("cli report: --plot draws a row for every layer in the terminal") {
  const Reported world;
  const std::string out = world.eval("r.html").out;
  const size_t plot = out.find("\nLargest |K| of each layer");
  REQUIRE(plot != out.npos);
  CHECK(out.find("\n   0  ", plot) != out.npos);
  CHECK(out.find("\n   1  ", plot) != out.npos);
  CHECK(out.find("\nLargest |V| of each layer", plot) != out.npos);
  CHECK(out.find("\nRelative error of the attention output", plot) != out.npos);
}

}  // namespace fp8kv
