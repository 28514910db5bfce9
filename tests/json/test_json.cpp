#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "json/json.h"
#include "support/expect_error.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

std::string refusal(std::string_view text) {
  return test::error_of([&] { Json::parse(text, "doc"); });
}

TEST_CASE("json: accepts and rejects what JSONTestSuite says") {
  const auto folder = test::shared_data("malformed/JSONTestSuite");
  if (!folder) return;
  size_t accepted = 0;
  size_t rejected = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".json") continue;
    CAPTURE(name);
    const std::string text = test::read_file(entry.path());
    if (name == "y_object_duplicated_key.json" ||
        name == "y_object_duplicated_key_and_value.json") {
      // RFC 8259 leaves repeated keys to the reader. This reader refuses them.
      CHECK(refusal(text) == "doc: the key 'a' is there twice");
    } else if (name.starts_with("y_")) {
      CHECK_NOTHROW(Json::parse(text, "doc"));
      ++accepted;
    } else if (name.starts_with("n_")) {
      CHECK(refusal(text).starts_with("doc: "));
      ++rejected;
    } else {  // i_: may be accepted or refused, but must not crash
      try {
        Json::parse(text, "doc");
      } catch (const Error&) {
      }
    }
  }
  CHECK(accepted >= 90);
  CHECK(rejected >= 180);
}

TEST_CASE("json: errors name the line and the column") {
  CHECK(refusal("{\"a\": 1,\n \"b\": }") ==
        "doc: not valid JSON at line 2, column 7: unexpected '}'; expected '[', '{', or a literal");
  CHECK(refusal("") == "doc: not valid JSON: there is nothing in it");
  CHECK(refusal(" \n") == "doc: not valid JSON: there is nothing in it");
  CHECK(refusal("[1] x").starts_with("doc: not valid JSON at line 1, column 5: "));
  CHECK(refusal("\"\xFF\"").starts_with("doc: not valid JSON at line 1, column 2: "));
  CHECK(refusal("[\"\xED\xA0\x80\"]").starts_with("doc: not valid JSON at line 1, column "));
}

TEST_CASE("json: NaN and Infinity are read where Python may have written them") {
  const auto read = [](std::string_view text) {
    return Json::parse(text, "doc", JsonNumbers::python);
  };
  const Json json = read(R"({"NaN": [0.0, Infinity], "a": -Infinity, "b": NaN, "c": -1,
      "d": "\"NaN, Infinity", "e": [1e3, {"f": Infinity}], "Infinity": 7})");
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  CHECK(json.at("NaN")[0].as_double() == 0);
  CHECK(json.at("NaN")[1].as_double() == kInfinity);
  CHECK(json.at("a").as_double() == -kInfinity);
  CHECK(std::isnan(json.at("b").as_double()));
  CHECK(json.at("c").as_int() == -1);
  CHECK(json.at("d").as_string() == "\"NaN, Infinity");
  CHECK(json.at("e")[0].as_double() == 1000);
  CHECK(json.at("e")[1].at("f").as_double() == kInfinity);
  CHECK(json.at("Infinity").as_int() == 7);
  CHECK(json.at("NaN").brief() == "[0.0, Infinity]");
  CHECK(json.at("a").number_text() == "-Infinity");
  CHECK(test::error_of([&] { json.at("b").as_int(); }) ==
        "doc: b: is a number (NaN), expected an integer");
  CHECK(std::isnan(read("NaN").as_double()));
  CHECK(refusal("[NaN]") ==
        "doc: not valid JSON at line 1, column 2: NaN and Infinity are no numbers of JSON");
  // The position of an error after such a number is right.
  CHECK(test::error_of([&] {
          read("[Infinity,\n NaN, x]");
        }).starts_with("doc: not valid JSON at line 2, column 7: "));
  for (const char* text : {"[-NaN]", "[+Infinity]", "[1Infinity]", "[Infinity1]", "[NaN NaN]",
                           "[nan]", "{NaN: 1}", "[Infinit", "[\"NaN", "Infinity]"}) {
    CAPTURE(text);
    CHECK(test::error_of([&] { read(text); }).starts_with("doc: not valid JSON"));
  }
}

TEST_CASE("json: what else Python may write is what JSONTestSuite says") {
  const auto folder = test::shared_data("malformed/JSONTestSuite");
  if (!folder) return;
  size_t with_words = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*folder)) {
    if (entry.path().extension() != ".json") continue;
    const std::string name = entry.path().filename().string();
    CAPTURE(name);
    const std::string text = test::read_file(entry.path());
    const auto outcome = [&](JsonNumbers numbers) -> std::string {
      try {
        return Json::parse(text, "doc", numbers).brief();
      } catch (const Error& error) {
        return error.what();
      }
    };
    const bool words = name == "n_number_NaN.json" || name == "n_number_infinity.json" ||
                       name == "n_number_minus_infinity.json";
    with_words += words ? 1 : 0;
    if (words) {
      CHECK(outcome(JsonNumbers::python) == text);
    } else {
      CHECK(outcome(JsonNumbers::python) == outcome(JsonNumbers::finite));
    }
  }
  CHECK(with_words == 3);
}

TEST_CASE("json: refuses duplicate keys and depth past the limit") {
  CHECK(refusal(R"({"a":{"b":1,"c":2,"b":3}})") == "doc: the key 'b' is there twice");
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  CHECK_NOTHROW(Json::parse(nested(128), "doc"));
  CHECK(refusal(nested(129)) == "doc: nested deeper than 128 levels");
  CHECK(refusal(std::string(1 << 20, '[')) == "doc: nested deeper than 128 levels");
}

TEST_CASE("json: a value of another type is an error that says where, what and instead of what") {
  const Json json = Json::parse(R"({"a":{"b":[1,"x",null]},"c d":2.5,"t":true})", "doc");
  const auto error = [](auto&& work) { return test::error_of(work); };
  CHECK(error([&] { json.at("a").at("b")[1].as_int(); }) ==
        "doc: a.b[1]: is a string (\"x\"), expected an integer");
  CHECK(error([&] { json.at("a").at("b")[2].as_int(); }) ==
        "doc: a.b[2]: is null, expected an integer");
  CHECK(error([&] { json.at("c d").as_int(); }) ==
        "doc: 'c d': is a number (2.5), expected an integer");
  CHECK(error([&] { json.at("t").as_string(); }) ==
        "doc: t: is true or false (true), expected a string");
  CHECK(error([&] { json.at("a").as_bool(); }) ==
        "doc: a: is an object ({\"b\": [1, \"x\", null]}), expected true or false");
  CHECK(error([&] { json.at("aa"); }) == "doc: the key 'aa' is missing (did you mean 'a'?)");
  CHECK(error([&] { json.at("t").at("x"); }) ==
        "doc: t: is true or false (true), expected an object");
  CHECK(error([&] { json.as_double(); }).starts_with("doc: is an object ("));
}

TEST_CASE("json: integers are those that int64 holds, however they are written") {
  const auto number = [](const std::string& text) { return Json::parse(text, "doc"); };
  CHECK(number("4096").as_int() == 4096);
  CHECK(number("4096.0").as_int() == 4096);
  CHECK(number("4.096e3").as_int() == 4096);
  CHECK(number("-0").as_int() == 0);
  CHECK(number("9223372036854775807").as_int() == INT64_MAX);
  CHECK(number("-9223372036854775808").as_int() == INT64_MIN);
  for (const char* text :
       {"9223372036854775808", "18446744073709551615", "1e300", "0.5", "-9223372036854775809"}) {
    CAPTURE(text);
    CHECK(test::error_of([&] { number(text).as_int(); }).ends_with("), expected an integer"));
    CHECK(number(text).number_text() == text);
  }
  CHECK(number("9223372036854775807").number_text() == "9223372036854775807");
}

TEST_CASE("json: a null member counts as absent") {
  const Json json = Json::parse(R"({"a":null,"b":0})", "doc");
  CHECK_FALSE(json.has("a"));
  CHECK(json.has("b"));
  CHECK(json.get_int("a", 7) == 7);
  CHECK(json.get_string("c", "x") == "x");
  CHECK(json.size() == 2);
  CHECK(json.value(0).is_null());
}

TEST_CASE("json writer: a float written reads back bit for bit") {
  Rng rng(3);
  std::vector<float> numbers{0.0f,
                             -0.0f,
                             1.0f / 448.0f,
                             std::numeric_limits<float>::max(),
                             std::numeric_limits<float>::denorm_min(),
                             16777216.0f,
                             1e10f};
  while (numbers.size() < 5000) {
    const float number = std::bit_cast<float>(static_cast<uint32_t>(rng.next()));
    if (number - number == 0) numbers.push_back(number);
  }
  JsonWriter writer;
  writer.value(std::span<const float>(numbers));
  const Json read = Json::parse(writer.text(), "doc");
  REQUIRE(read.size() == numbers.size());
  size_t wrong = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto back = static_cast<float>(read[i].as_double());
    wrong += std::bit_cast<uint32_t>(back) != std::bit_cast<uint32_t>(numbers[i]);
  }
  CHECK(wrong == 0);
}

TEST_CASE("json writer: lays out documents in two ways") {
  const auto write = [](JsonWriter::Layout layout) {
    JsonWriter writer(layout);
    const std::vector<float> numbers{1, 0.5f};
    const std::vector<std::string> texts{"x", "y"};
    writer.begin_object().member("n", std::span<const float>(numbers));
    writer.member("t", std::span<const std::string>(texts));
    writer.key("e").begin_object().end_object().key("z").begin_array().end_array();
    writer.member("s", "a\"\\\n\t\x01\x7F/é").key("nil").null().member("f", true);
    writer.member("i", int64_t{-3}).member("u", UINT64_MAX).member("d", 0.1);
    return writer.end_object().text();
  };
  CHECK(write(JsonWriter::Layout::one_line) ==
        R"({"n": [1, 0.5], "t": ["x", "y"], "e": {}, "z": [], )"
        R"("s": "a\"\\\n\t\u0001\u007f/é", "nil": null, "f": true, )"
        R"("i": -3, "u": 18446744073709551615, "d": 0.1})");
  CHECK(write(JsonWriter::Layout::indented) == R"({
  "n": [1, 0.5],
  "t": [
    "x",
    "y"
  ],
  "e": {},
  "z": [],
  "s": "a\"\\\n\t\u0001\u007f/é",
  "nil": null,
  "f": true,
  "i": -3,
  "u": 18446744073709551615,
  "d": 0.1
}
)");
}

TEST_CASE("json writer: a copied document keeps every digit and character") {
  const std::string text =
      R"({"a": [1.10, -0.0, -0, 1E5, 123456789012345678901234567890, 0.1e-7], "b": {"c\n": "é\u0000"}})";
  JsonWriter writer(JsonWriter::Layout::one_line);
  const Json json = Json::parse(text, "doc");
  CHECK(writer.value(json).text() == text);
}

TEST_CASE("json_with_member: replaces or appends, and keeps every other byte") {
  CHECK(json_with_member(R"({"a": 1, "b" : [ 2 , "}" ] ,"c":3})", "b", "\"x\"") ==
        R"({"a": 1, "b" : "x" ,"c":3})");
  CHECK(json_with_member("{\n    \"a\": 1,\n    \"b\": 2\n}\n", "c", "3") ==
        "{\n    \"a\": 1,\n    \"b\": 2,\n    \"c\": 3\n}\n");
  CHECK(json_with_member("{}", "c", "3") == "{\"c\": 3}");
  CHECK(json_with_member(" { } ", "c", "3") == " {\"c\": 3 } ");
  CHECK(json_with_member(R"({"a":{"c":1}})", "c", "3") == R"({"a":{"c":1},"c": 3})");
  CHECK(json_with_member(R"({"\u0063":1})", "c", "3") == R"({"\u0063":3})");
  CHECK(json_with_member(R"({"a":"\\\"}"})", "a", "0") == R"({"a":0})");
  CHECK(json_with_member(R"({"a":1})", "q\"", "0") == R"({"a":1,"q\"": 0})");
}

TEST_CASE("json_without_member: takes out one member, and keeps every other byte") {
  CHECK(json_without_member(R"({"a": 1, "b" : [ 2 , "}" ] ,"c":3})", "b") == R"({"a": 1 ,"c":3})");
  CHECK(json_without_member("{\n  \"a\": 1,\n  \"b\": 2\n}\n", "b") == "{\n  \"a\": 1\n}\n");
  CHECK(json_without_member("{\n  \"a\": 1,\n  \"b\": 2\n}\n", "a") == "{\n  \"b\": 2\n}\n");
  CHECK(json_without_member(R"({"a":{"c":1}})", "a") == "{}");
  CHECK(json_without_member(R"({"a":{"c":1}})", "c") == R"({"a":{"c":1}})");
  CHECK(json_without_member("{}", "c") == "{}");
}

TEST_CASE("json edits: keep the NaN and Infinity of other members") {
  const std::string text = "{\n  \"a\": [0.0, Infinity],\n  \"b\": NaN,\n  \"c\": -Infinity\n}\n";
  CHECK(json_with_member(text, "b", "1") ==
        "{\n  \"a\": [0.0, Infinity],\n  \"b\": 1,\n  \"c\": -Infinity\n}\n");
  CHECK(json_without_member(text, "c") == "{\n  \"a\": [0.0, Infinity],\n  \"b\": NaN\n}\n");
}

TEST_CASE("json_without_member: undoes what json_with_member appended") {
  for (const std::string text : {"{\n    \"a\": 1,\n    \"b\": 2\n}\n", "{\"a\":[1]}", "{}"}) {
    CHECK(json_without_member(json_with_member(text, "new", "{\n}"), "new") == text);
  }
}

TEST_CASE("json_with_member: whatever the document, reads back with only that member changed") {
  Rng rng(8);
  const std::string keys[] = {"a", "b", "c\"", "d\\", "é"};
  const std::string values[] = {"1",    "\"}\\\"{\"", "[1, {\"a\": [2]}]",      "{ }",
                                "null", "-1.5e3",     "{\"c\": {\"x\": \"]\"}}"};
  const std::string gaps[] = {"", " ", "\n\t", "  "};
  const auto gap = [&] { return gaps[rng.next() % std::size(gaps)]; };
  const auto spelled = [](const std::string& key) {
    return JsonWriter(JsonWriter::Layout::one_line).value(key).text();
  };
  for (int round = 0; round < 2000; ++round) {
    std::string text = gap() + "{" + gap();
    std::vector<std::pair<std::string, std::string>> members;
    for (const std::string& key : keys) {
      if (rng.next() % 2) continue;
      const std::string& value = values[rng.next() % std::size(values)];
      text +=
          (members.empty() ? "" : "," + gap()) + spelled(key) + gap() + ":" + gap() + value + gap();
      members.emplace_back(key, value);
    }
    text += "}" + gap();
    const std::string key = keys[rng.next() % std::size(keys)];
    CAPTURE(text);
    CAPTURE(key);
    const Json json = Json::parse(json_with_member(text, key, "[\"new\"]"), "doc");
    bool was_there = false;
    for (size_t i = 0; i < members.size(); ++i) {
      REQUIRE(json.key(i) == members[i].first);
      const bool changed = members[i].first == key;
      was_there = was_there || changed;
      const auto one_line = [](const Json& value) {
        return JsonWriter(JsonWriter::Layout::one_line).value(value).text();
      };
      CHECK(one_line(json.value(i)) ==
            one_line(Json::parse(changed ? "[\"new\"]" : members[i].second, "doc")));
    }
    CHECK(json.size() == members.size() + (was_there ? 0 : 1));
    CHECK(json.at(key)[0].as_string() == "new");
  }
}

TEST_CASE("Json::parse_line: the number of the line costs nothing, and is in the message") {
  constexpr size_t kFar = size_t{1} << 50;  // more newlines than memory can hold
  CHECK(test::error_of([&] { Json::parse_line(R"({"a": x})", kFar, "'f'"); }) ==
        cat("'f':", kFar, ": not valid JSON at line ", kFar, ", column 7: invalid literal"));
  CHECK(test::error_of([&] { Json::parse_line("", 7, "'f'"); }) ==
        "'f':7: not valid JSON: there is nothing in it");
  CHECK(test::error_of([&] { Json::parse_line(std::string("1\0", 2), 7, "'f'"); }) ==
        "'f':7: not valid JSON: byte 1 is NUL");
  CHECK(Json::parse_line("[1]", kFar, "'f'")[0].where() == cat("'f':", kFar, ": [0]"));
}

}  // namespace
}  // namespace fp8kv
