#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "data/column.h"
#include "records_of.h"

namespace fp8kv {
namespace {

std::string of(const std::string& record, const std::string& column) {
  JsonWriter json(JsonWriter::Layout::one_line);
  return json.value(with_column(Json::parse(record, "r"), column)).text();
}

std::string refused(const std::string& record, const std::string& column) {
  return test::error_of([&] { with_column(Json::parse(record, "r"), column); });
}

}  // namespace

TEST_CASE("column: what a field holds decides what form the record has") {
  CHECK(of(R"({"text": "no", "body": "yes"})", "body") == R"({"text": "yes"})");
  CHECK(of(R"({"body": null})", "body") == R"({"text": ""})");
  CHECK(of(R"({"a": [{"role": "user", "content": "x"}], "tools": [], "b": 1})", "a") ==
        R"({"messages": [{"role": "user", "content": "x"}], "tools": []})");
  CHECK(of(R"({"a": [{"from": "human", "value": "x"}]})", "a") ==
        R"({"conversations": [{"from": "human", "value": "x"}]})");
  CHECK(of(R"({"a": ["x", "y"]})", "a") == R"({"turns": ["x", "y"]})");
  CHECK(of(R"({"a": [1, 2]})", "a") == R"({"input_ids": [1, 2]})");
  CHECK(of(R"({"a": []})", "a") == R"({"text": ""})");
}

TEST_CASE("column: one that is not there is an error that lists those that are") {
  CHECK(refused(R"({"body": "x", "id": 1})", "bodi") ==
        "r: has no column 'bodi', has 'body' and 'id' (did you mean 'body'?)");
  CHECK(refused(R"({"a": 5})", "a") == "r: a: is 5, expected a text or a list");
  CHECK(refused(R"({"a": [[1]]})", "a") ==
        "r: a: is [[1]], expected a text, a list of messages, of texts or of token ids");
  CHECK(test::data_error("a.csv", "body,id\nx,1\n", "text") ==
        "FILE: record 1, line 2: has no column 'text', has 'body' and 'id'");
  CHECK(test::data_error("a.txt", "abc", "body") ==
        "FILE: is plain text, which has no column 'body'");
}

}  // namespace fp8kv
