// eval --report and --plot through the program: the page as a browser gets it.
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "support/run_cli.h"
#include "support/temp_dir.h"
#include "support/tiny_checkpoint.h"

namespace fp8kv {
namespace {

// A model in a folder whose name is hostile, and the report on it.
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

  test::CliResult eval(const std::string& report) const {
    return test::run_cli({"eval", model, "--data", "ids.jsonl", "--policy", "amax,unit", "--report",
                          report, "--plot", "-q"},
                         temp.path());
  }
};

// Names of the tags left open; "" when every tag is closed in order. Void elements need no end.
std::string unbalanced(const std::string& html) {
  static const std::set<std::string> kVoid = {"meta", "br", "hr", "img", "input", "link", "col"};
  std::vector<std::string> open;
  for (size_t at = html.find('<'); at != html.npos; at = html.find('<', at + 1)) {
    if (html[at + 1] == '!') continue;
    const bool end = html[at + 1] == '/';
    const size_t begin = at + (end ? 2 : 1);
    const size_t name_end = html.find_first_of(" />\n", begin);
    const std::string name = html.substr(begin, name_end - begin);
    if (name.empty() || !std::isalpha(static_cast<unsigned char>(name[0]))) continue;
    const size_t close = html.find('>', at);
    if (end) {
      if (open.empty() || open.back() != name) return name;
      open.pop_back();
    } else if (html[close - 1] != '/' && !kVoid.contains(name)) {
      open.push_back(name);
      // What is in a script or a style is no markup.
      if (name == "script" || name == "style") at = html.find("</" + name, at) - 1;
    }
  }
  return open.empty() ? "" : open.back();
}

}  // namespace

TEST_CASE("cli report: one page that is well formed, escaped and asks for nothing outside") {
  const Reported world;
  const test::CliResult result = world.eval("r.html");
  CHECK(result.exit_code == 0);
  const std::string html = test::read_file(world.temp / "r.html");
  CHECK(html.starts_with("<!DOCTYPE html>"));
  CHECK(unbalanced(html) == "");
  for (const char* outside : {"http:", "https:", "src=", "url(", "@import"}) {
    CAPTURE(outside);
    CHECK(html.find(outside) == html.npos);
  }
  CHECK(html.find("a&lt;b&gt;&amp;") != html.npos);
  CHECK(html.find("a<b>") == html.npos);
  CHECK(html.find("<svg") != html.npos);
  CHECK(html.find("prefers-color-scheme") != html.npos);
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
