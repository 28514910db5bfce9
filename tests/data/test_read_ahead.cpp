// Reading in another thread gives the same records, and the same errors in the same places.
#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "data/documents.h"
#include "data/read_ahead.h"
#include "data/records_of.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

TEST_CASE("read ahead: items come in their order, and what was thrown behind them") {
  ReadAhead<int> ahead(100, [](const ReadAhead<int>::Put& put) {
    for (int i = 0; i < 1000; ++i) put(i, 1);
    fail("broken");
  });
  for (int i = 0; i < 1000; ++i) CHECK(ahead.next() == i);
  CHECK(test::error_of([&] { ahead.next(); }) == "broken");
}

TEST_CASE("read ahead: no further than was asked for, and one item where it is larger") {
  std::atomic<int> made = 0;
  ReadAhead<int> ahead(10, [&](const ReadAhead<int>::Put& put) {
    for (int i = 0; i < 100; ++i) {
      ++made;
      if (!put(i, i == 50 ? 1000 : 5)) return;
    }
  });
  for (int i = 0; i < 100; ++i) {
    CHECK(ahead.next() == i);
    CHECK(made <= i + 6);  // this one, one more taken, two waiting, one being put
  }
  CHECK(!ahead.next());
}

TEST_CASE("read ahead: who wants no more ends the maker") {
  std::atomic<bool> ended = false;
  {
    ReadAhead<int> ahead(10, [&](const ReadAhead<int>::Put& put) {
      while (put(1, 10)) continue;
      ended = true;
    });
    CHECK(ahead.next() == 1);
  }
  CHECK(ended);
}

// More lines than are read ahead. Line `broken` is not JSON; 0: no such line.
std::string lines_with(size_t broken) {
  std::string text;
  for (size_t number = 1; number <= 30'000; ++number) {
    text += number == broken ? "{\"text\": oops}\n"
                             : cat("{\"text\": \"", std::string(400, 'a'), number, "\"}\n");
  }
  return text;
}

TEST_CASE("read ahead: a large file gives every record, in order") {
  const test::TempDir folder;
  const std::vector<std::string> records = test::records_of(folder.write("a.jsonl", lines_with(0)));
  REQUIRE(records.size() == 30'000);
  for (size_t i = 0; i < records.size(); i += 997) {
    CHECK(records[i] == cat("{\"text\": \"", std::string(400, 'a'), i + 1, "\"}"));
  }
}

TEST_CASE("read ahead: a broken record is named by its number, once all before it are taken") {
  const test::TempDir folder;
  const auto path = folder.write("a.jsonl", lines_with(20'000));
  const DataSource source = open_data(path);
  size_t taken = 0;
  const std::string error = test::error_of([&] {
    for_each_document(source, {[] { return true; }, nullptr, [&](const Json&) { ++taken; }});
  });
  CHECK(error.starts_with(cat(quote(path.string()), ":20000: ")));
  CHECK(taken == 19'999);
}

TEST_CASE("read ahead: a broken record behind the last one that is wanted is none") {
  const test::TempDir folder;
  const auto path = folder.write("a.jsonl", lines_with(20'000));
  CHECK(test::records_of(path, "", 19'999).size() == 19'999);
  CHECK(test::error_of([&] { test::records_of(path, "", 20'000); }) != "");
}

TEST_CASE("read ahead: who throws while records wait gets that error") {
  const test::TempDir folder;
  const DataSource source = open_data(folder.write("a.jsonl", lines_with(0)));
  CHECK(test::error_of([&] {
          for_each_document(source, {[] { return true; }, nullptr,
                                     [&](const Json&) { fail("no more of this"); }});
        }) == "no more of this");
}

TEST_CASE("read ahead: columns of large tables are as those of small ones") {
  const test::TempDir folder;
  std::string text = "id,said\n";
  for (int i = 0; i < 30'000; ++i) text += cat(i, ",", std::string(50, 'b'), "\n");
  const auto path = folder.write("a.csv", text);
  const auto records = test::records_of(path, "said");
  REQUIRE(records.size() == 30'000);
  CHECK(records[29'999] == cat("{\"text\": \"", std::string(50, 'b'), "\"}"));
  CHECK(test::error_of([&] { test::records_of(path, "sad"); }).find("'sad'") != std::string::npos);
}

}  // namespace
}  // namespace fp8kv
