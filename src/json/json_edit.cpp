// Edits JSON text and keeps every byte outside of the edit.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "json/json.h"

namespace fp8kv {

// These scanners run on text that the parser has accepted, so they need no error paths.
namespace {

size_t skip_space(std::string_view text, size_t at) {
  while (at < text.size() && std::string_view(" \t\r\n").find(text[at]) != std::string_view::npos) {
    ++at;
  }
  return at;
}

size_t skip_string(std::string_view text, size_t at) {
  for (++at; text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at + 1;
}

size_t skip_value(std::string_view text, size_t at) {
  size_t depth = 0;
  do {
    const char c = text[at];
    if (c == '"') {
      at = skip_string(text, at);
    } else {
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++at;
    }
  } while (depth > 0 || (at < text.size() &&
                         std::string_view(",}] \t\r\n").find(text[at]) == std::string_view::npos));
  return at;
}

// The place of one member of an object in its text.
struct MemberPlace {
  std::string name;
  size_t begin = 0;  // start of the name
  size_t value_begin = 0;
  size_t value_end = 0;
};

std::vector<MemberPlace> member_places(std::string_view text) {
  std::vector<MemberPlace> places;
  size_t at = skip_space(text, 0) + 1;  // past the opening brace
  while (text[at = skip_space(text, at)] != '}') {
    MemberPlace place;
    place.begin = at;
    const size_t name_end = skip_string(text, at);
    place.name = Json::parse(text.substr(at, name_end - at), "key").as_string();
    place.value_begin = skip_space(text, skip_space(text, name_end) + 1);
    place.value_end = skip_value(text, place.value_begin);
    at = skip_space(text, place.value_end);
    if (text[at] == ',') ++at;
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace

std::string json_with_member(std::string_view text, std::string_view key, std::string_view value) {
  const std::vector<MemberPlace> places = member_places(text);
  for (const MemberPlace& place : places) {
    if (place.name != key) continue;
    return cat(text.substr(0, place.value_begin), value, text.substr(place.value_end));
  }
  const size_t brace_end = skip_space(text, 0) + 1;
  const size_t end_of_last = places.empty() ? brace_end : places.back().value_end;
  // The white space before the first member shows the style of the document.
  const std::string_view gap =
      places.empty() ? "" : text.substr(brace_end, places[0].begin - brace_end);
  return cat(text.substr(0, end_of_last), places.empty() ? "" : ",", gap,
             JsonWriter(JsonWriter::Layout::one_line).value(key).text(), ": ", value,
             text.substr(end_of_last));
}

std::string json_without_member(std::string_view text, std::string_view key) {
  const std::vector<MemberPlace> places = member_places(text);
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i].name != key) continue;
    const bool first = i == 0;
    const size_t begin = first ? places[i].begin : places[i - 1].value_end;
    const size_t end = first && places.size() > 1 ? places[1].begin : places[i].value_end;
    return cat(text.substr(0, begin), text.substr(end));
  }
  return std::string(text);
}

}  // namespace fp8kv
