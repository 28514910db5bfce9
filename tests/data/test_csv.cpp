#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "data/csv.h"
#include "records_of.h"

namespace fp8kv {
namespace {

using Records = std::vector<std::string>;

Records read(const std::string& name, std::string_view bytes) {
  const test::TempDir folder;
  return test::records_of(folder.write(name, bytes));
}

}  // namespace

TEST_CASE("csv: rows are records of the columns that the first line names") {
  CHECK(read("a.csv", "id,text\n1,one\n2,two\n") ==
        Records{R"({"id": "1", "text": "one"})", R"({"id": "2", "text": "two"})"});
  CHECK(read("a.tsv", "id\ttext\n1\tone, two\n") == Records{R"({"id": "1", "text": "one, two"})"});
}

TEST_CASE("csv: quoted fields hold separators, quotes and newlines as they are") {
  CHECK(read("a.csv", "text\n\"a,b\"\n\"say \"\"hi\"\"\"\n\"two\r\n\r\nlines\"\n\"\"\n") ==
        Records{R"({"text": "a,b"})", R"({"text": "say \"hi\""})",
                R"({"text": "two\r\n\r\nlines"})", R"({"text": ""})"});
  CHECK(read("a.tsv", "text\tid\n\"a\tb\nc\"\t1\n") ==
        Records{R"({"text": "a\tb\nc", "id": "1"})"});
}

TEST_CASE("csv: a byte-order mark, CRLF, blank lines and a last line without an end are accepted") {
  CHECK(read("a.csv", "\xEF\xBB\xBFtext,b\r\n\r\none,1\r\n\n\"two\",\r\nthree,3") ==
        Records{R"({"text": "one", "b": "1"})", R"({"text": "two", "b": ""})",
                R"({"text": "three", "b": "3"})"});
}

TEST_CASE("csv: a row that does not fit the columns is named by its number and its line") {
  CHECK(test::data_error("a.csv", "text,b\n\"x\ny\",1\n\none\n") ==
        "FILE: record 2, line 5: has 1 field, expected 2, as the first line has");
  CHECK(test::data_error("a.csv", "text\none,two\n") ==
        "FILE: record 1, line 2: has 2 fields, expected 1, as the first line has");
  CHECK(test::data_error("a.csv", "text\none\n\"two\nthree\n") ==
        "FILE: record 2, line 3: field 1: its quote is not closed");
  CHECK(test::data_error("a.csv", "text,b\n\"one\" x,1\n") ==
        "FILE: record 1, line 2: field 1: goes on behind its closing quote");
  CHECK(test::data_error("a.csv", "text,b,text\n1,2,3\n") == "FILE: has the column 'text' twice");
}

}  // namespace fp8kv
