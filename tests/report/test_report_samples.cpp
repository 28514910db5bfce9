// Pages of odd evaluations are whole and harmless, whatever the numbers and names.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "report/pages/html_report.h"
#include "support/markup.h"
#include "support/sample_report.h"

namespace fp8kv {
namespace {

using test::Tag;

// Tags and attributes, without their texts.
std::vector<std::string> skeleton(const std::string& html) {
  std::vector<std::string> parts;
  for (const Tag& tag : test::tags_of(html)) {
    std::string part = (tag.is_end ? "/" : "") + tag.name;
    for (const auto& [name, value] : tag.attributes) part += " " + name;
    parts.push_back(part);
  }
  return parts;
}

TEST_CASE("report: odd evaluations make whole pages") {
  for (const auto& [name, html] : test::sample_pages()) {
    CAPTURE(name);
    CHECK(html.starts_with("<!DOCTYPE html>"));
    CHECK(html.ends_with("</html>\n"));
    CHECK(test::unbalanced(html) == "");
    std::set<std::string> ids;
    for (const Tag& tag : test::tags_of(html)) {
      const auto id = tag.attributes.find("id");
      if (id != tag.attributes.end()) CHECK_MESSAGE(ids.insert(id->second).second, id->second);
      for (const char* place : {"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height",
                                "d", "points", "viewBox"}) {
        const auto value = tag.attributes.find(place);
        if (value == tag.attributes.end() || tag.name == "meta") continue;
        CHECK_MESSAGE(value->second.find_first_not_of("0123456789.-MLH, ") == std::string::npos,
                      value->second);
      }
    }
    for (const Tag& tag : test::tags_of(html)) {
      const auto label = tag.attributes.find("aria-labelledby");
      if (label != tag.attributes.end()) CHECK(ids.contains(label->second));
    }
  }
}

TEST_CASE("report: a page grows with the layers, not beyond reason") {
  size_t seen = 0;
  for (const auto& [name, html] : test::sample_pages()) {
    if (name != "many" && name != "scales-many") continue;
    ++seen;
    CHECK(html.size() < (3u << 20));
  }
  CHECK(seen == 2);
}

TEST_CASE("report: hostile names are words, wherever they stand") {
  const std::vector<std::pair<std::string, EvalReport>> samples = test::sample_reports();
  const auto hostile = std::find_if(samples.begin(), samples.end(),
                                    [](const auto& each) { return each.first == "hostile"; });
  REQUIRE(hostile != samples.end());
  const std::string html = html_report(hostile->second);
  // The page has the same elements and attributes with a plain name.
  CHECK(skeleton(html) == skeleton(html_report(test::sample_report({.name = "plain"}))));
  for (const char* raw : {"<script>alert", "onerror=alert(2)>", "\x01", "\x1b", "\xff",
                          "\xe2\x80\xae", "</title></style>"}) {
    CAPTURE(raw);
    CHECK(html.find(raw) == std::string::npos);
  }
  // The hostile name occurs in model, fingerprint, device, files, policies, ...
  size_t seen = 0;
  for (size_t at = html.find("&lt;script&gt;alert(1)"); at != html.npos;
       at = html.find("&lt;script&gt;alert(1)", at + 1)) {
    ++seen;
  }
  CHECK(seen > 20);
  CHECK(html.find("\xD7\x90") != std::string::npos);  // right-to-left letters stay
}

TEST_CASE("report: hostile names are words on a page of scales") {
  const auto page = [](const std::string& name) {
    for (const auto& [sample, html] : test::sample_pages()) {
      if (sample == name) return html;
    }
    return std::string();
  };
  const std::string html = page("scales-hostile");
  CHECK(skeleton(html) == skeleton(page("scales-plain")));
  for (const char* raw : {"<script>alert", "onerror=alert(2)>", "\x01", "\x1b", "\xff",
                          "\xe2\x80\xae", "</title></style>"}) {
    CAPTURE(raw);
    CHECK(html.find(raw) == std::string::npos);
  }
  size_t seen = 0;  // in name, model type, fingerprint, file, digest, ...
  for (size_t at = html.find("&lt;script&gt;alert(1)"); at != html.npos;
       at = html.find("&lt;script&gt;alert(1)", at + 1)) {
    ++seen;
  }
  CHECK(seen > 10);
}

}  // namespace
}  // namespace fp8kv
