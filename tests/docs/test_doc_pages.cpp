// README's length, links between the pages, and the list of tests.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include <doctest/doctest.h>

#include "base/text.h"
#include "docs/markdown.h"
#include "support/places.h"
#include "support/temp_dir.h"

using namespace fp8kv;
using test::lines_of;

namespace {

// The anchor that GitHub gives a heading: lower case, blanks as "-", no punctuation.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == ' ' || c == '-') {
      anchor += '-';
    } else if (std::isalnum(byte) || c == '_' || byte >= 0x80) {
      anchor += static_cast<char>(std::tolower(byte));
    }
  }
  return anchor;
}

std::set<std::string> anchors_on(const std::string& page) {
  std::set<std::string> anchors;
  bool in_block = false;
  for (const std::string& line : lines_of(test::page_text(page))) {
    if (line.starts_with("```")) in_block = !in_block;
    const size_t blank = line.find(' ');
    const bool heading =
        !in_block && blank != line.npos && blank > 0 && line.find_first_not_of('#') == blank;
    if (heading) anchors.insert(anchor_of(line.substr(blank + 1)));
  }
  return anchors;
}

// Targets of links and pictures on a page, except addresses.
std::vector<std::string> links_on(const std::string& page) {
  std::vector<std::string> links;
  const std::string text = test::page_text(page);
  const std::vector<std::pair<std::string, char>> forms = {{"](", ')'}, {"src=\"", '"'}};
  for (const auto& [opening, closing] : forms) {
    for (size_t at = text.find(opening); at != text.npos; at = text.find(opening, at + 1)) {
      const size_t begin = at + opening.size();
      const std::string link = text.substr(begin, text.find(closing, begin) - begin);
      if (link.find("://") == link.npos) links.push_back(link);
    }
  }
  return links;
}

}  // namespace

TEST_CASE("docs: README is at most 170 lines") {
  CHECK(lines_of(test::page_text("README.md")).size() <= 170);
}

TEST_CASE("docs: every link leads to a file, and to a heading of it") {
  size_t checked = 0;
  for (const std::string& page : test::pages()) {
    for (const std::string& link : links_on(page)) {
      CAPTURE(page);
      CAPTURE(link);
      const size_t hash = link.find('#');
      const std::filesystem::path folder = std::filesystem::path(page).parent_path();
      const std::string target =
          hash == 0 ? page : (folder / link.substr(0, hash)).lexically_normal().string();
      CHECK(std::filesystem::exists(test::source_dir() / target));
      if (hash != link.npos) CHECK(anchors_on(target).contains(link.substr(hash + 1)));
      ++checked;
    }
  }
  CHECK(checked > 40);
}

namespace {

// Expands braces: "a.{h,cpp}" becomes "a.h" and "a.cpp".
std::vector<std::string> expanded(const std::string& path) {
  const size_t open = path.find('{'), close = path.find('}');
  if (open == path.npos || close == path.npos) return {path};
  std::vector<std::string> paths;
  for (size_t at = open + 1; at < close;) {
    const size_t end = std::min(path.find(',', at), close);
    paths.push_back(path.substr(0, open) + path.substr(at, end - at) + path.substr(close + 1));
    at = end + 1;
  }
  return paths;
}

bool is_path_of_project(const std::string& word) {
  for (const char* folder : {"src/", "tests/", "kernels/", "tools/", "scripts/", "bench/", "docs/",
                             "datasets/", ".ci/"}) {
    if (word.starts_with(folder)) return word.find("NAME") == word.npos;
  }
  return false;
}

}  // namespace

TEST_CASE("docs: every file and folder that a page names is there") {
  size_t checked = 0;
  for (const std::string& page : test::pages()) {
    for (const std::string& piece : test::code_on(page)) {
      for (const std::string& word : test::words_of(piece)) {
        if (!is_path_of_project(word)) continue;
        for (const std::string& path : expanded(word)) {
          CAPTURE(page);
          CAPTURE(path);
          CHECK(std::filesystem::exists(test::source_dir() / path));
          ++checked;
        }
      }
    }
  }
  CHECK(checked > 80);
}

// Every promise of the docs must name a test that exists.
TEST_CASE("docs: each promise names a test, and each name is that of one") {
  std::string sources;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(test::source_dir() / "tests")) {
    if (entry.path().extension() == ".cpp") sources += test::read_file(entry.path());
  }
  size_t rows = 0;
  for (const std::string& line : lines_of(test::page_text("docs/promises.md"))) {
    const bool is_row = line.starts_with("| ") && !line.ends_with("| held by |");
    const size_t tests = is_row ? line.rfind("| ", line.size() - 3) : line.npos;
    if (!is_row) continue;
    CAPTURE(line);
    size_t named = 0;
    for (size_t at = line.find('`', tests); at != line.npos; at = line.find('`', at + 1)) {
      const size_t end = line.find('`', at + 1);
      CHECK(sources.find(cat("TEST_CASE(\"", line.substr(at + 1, end - at - 1), "\")")) !=
            sources.npos);
      at = end;
      ++named;
    }
    CHECK(named > 0);
    ++rows;
  }
  CHECK(rows > 25);
}

TEST_CASE("docs: README leads to every page") {
  const std::vector<std::string> links = links_on("README.md");
  const std::set<std::string> linked(links.begin(), links.end());
  for (const std::string& page : test::pages()) {
    CAPTURE(page);
    if (page != "README.md") CHECK(linked.contains(page));
  }
}

// A test that is not built cannot fail.
TEST_CASE("tests: every test file has a line in CMake") {
  const std::filesystem::path tests = test::source_dir() / "tests";
  const std::string lists = test::read_file(tests / "CMakeLists.txt");
  size_t checked = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(tests)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("test_") || !name.ends_with(".cpp")) continue;
    const std::string path = entry.path().lexically_relative(tests).string();
    CAPTURE(path);
    CHECK(lists.find("  " + path + "\n") != lists.npos);
    ++checked;
  }
  CHECK(checked > 80);
}
