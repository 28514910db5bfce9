// A minimal HTML parser for the pages that this project writes.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fp8kv::test {

struct Tag {
  std::string name;
  bool is_end = false;
  bool is_whole = false;                          // <x/>
  std::map<std::string, std::string> attributes;  // as written, with entities
  std::string text;                               // the text up to the next tag
};

// All tags in order. The contents of scripts and styles are text.
inline std::vector<Tag> tags_of(std::string_view html) {
  std::vector<Tag> tags;
  for (size_t at = html.find('<'); at != html.npos;) {
    Tag& tag = tags.emplace_back();
    size_t i = at + 1;
    if (html[i] == '/') tag.is_end = true, ++i;
    const auto word = [&](std::string_view stops) {
      const size_t begin = i;
      i = std::min(html.find_first_of(stops, i), html.size());
      return std::string(html.substr(begin, i - begin));
    };
    tag.name = word(" />\n");
    while (i < html.size() && html[i] != '>') {
      if (html[i] == ' ' || html[i] == '/' || html[i] == '\n') {
        tag.is_whole = html[i++] == '/';
        continue;
      }
      const std::string name = word("= />\n");
      std::string value;
      if (i + 1 < html.size() && html[i] == '=' && html[i + 1] == '"') {
        i += 2;
        value = word("\"");
        ++i;
      }
      tag.attributes[name] = value;
    }
    const bool opaque = !tag.is_end && (tag.name == "script" || tag.name == "style");
    at = opaque ? html.find("</" + tag.name, i) : html.find('<', i);
    tag.text = html.substr(std::min(i + 1, html.size()), at == html.npos ? at : at - i - 1);
  }
  return tags;
}

// The tags of the drawing with this id; empty if there is none.
inline std::vector<Tag> drawing_of(std::string_view html, const std::string& id) {
  const std::vector<Tag> tags = tags_of(html);
  const auto begin = std::find_if(tags.begin(), tags.end(), [&](const Tag& tag) {
    const auto of = tag.attributes.find("aria-labelledby");
    return tag.name == "svg" && of != tag.attributes.end() && of->second == id;
  });
  return {begin, std::find_if(begin, tags.end(),
                              [](const Tag& tag) { return tag.is_end && tag.name == "svg"; })};
}

// The name of a tag that is not closed in order, or "".
inline std::string unbalanced(const std::string& html) {
  std::vector<std::string> open;
  for (const Tag& tag : tags_of(html)) {
    if (tag.is_whole || tag.name == "meta" || tag.name.starts_with("!")) continue;
    if (tag.is_end) {
      if (open.empty() || open.back() != tag.name) return tag.name;
      open.pop_back();
    } else {
      open.push_back(tag.name);
    }
  }
  return open.empty() ? "" : open.back();
}

}  // namespace fp8kv::test
