#include "show/junit.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace fp8kv {
namespace {

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        // XML cannot represent other control characters.
        escaped += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return escaped;
}

}  // namespace

std::string junit_text(const std::string& suite, std::span<const JunitCase> cases) {
  const auto failures = std::count_if(
      cases.begin(), cases.end(), [](const JunitCase& each) { return each.failure.has_value(); });
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  text += cat("<testsuites tests=\"", cases.size(), "\" failures=\"", failures, "\">\n");
  text += cat("  <testsuite name=\"", xml_escaped(suite), "\" tests=\"", cases.size(),
              "\" failures=\"", failures, "\">\n");
  for (const JunitCase& each : cases) {
    text += cat("    <testcase classname=\"", xml_escaped(each.classname), "\" name=\"",
                xml_escaped(each.name), "\"");
    if (each.failure) {
      text += cat(">\n      <failure message=\"", xml_escaped(*each.failure),
                  "\"/>\n    </testcase>\n");
    } else {
      text += "/>\n";
    }
  }
  return text + "  </testsuite>\n</testsuites>\n";
}

}  // namespace fp8kv
