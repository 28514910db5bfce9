#include "draw/html.h"

#include "base/text.h"
#include "draw/page_style.h"

namespace fp8kv {
namespace {

// Tables with more columns get narrower cells.
constexpr size_t kManyColumns = 8;
// Tables with more columns may be wider than a phone's screen, and get a hint to scroll.
constexpr size_t kFewColumns = 4;

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// The length of the valid UTF-8 sequence at the start of `text`; 0 if there is none.
size_t sequence_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = lead < 0x80 ? 1 : (lead < 0xE0 ? 2 : (lead < 0xF0 ? 3 : 4));
  return length <= text.size() && is_utf8(text.substr(0, length)) ? length : 0;
}

std::string escaped_byte(unsigned char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      break;
  }
  // Shows control characters as their pictures, U+2400 to U+2421.
  const unsigned char picture = c == 0x7F ? 0x21 : c;
  if (c < 0x20 || c == 0x7F) return {'\xE2', '\x90', static_cast<char>(0x80 + picture)};
  return std::string(1, static_cast<char>(c));
}

// Whether the character is a C1 control (U+0080 to U+009F) or sets the direction of text (U+061C,
// U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069).
bool is_invisible_control(std::string_view sequence) {
  if (sequence.size() == 2)
    return sequence == "\xD8\x9C" ||
           (sequence[0] == '\xC2' && static_cast<unsigned char>(sequence[1]) < 0xA0);
  if (sequence.size() != 3 || sequence[0] != '\xE2') return false;
  const auto second = static_cast<unsigned char>(sequence[1]);
  const auto third = static_cast<unsigned char>(sequence[2]);
  if (second == 0x80) return third == 0x8E || third == 0x8F || (third >= 0xAA && third <= 0xAE);
  return second == 0x81 && third >= 0xA6 && third <= 0xA9;
}

std::string cell(const char* tag, const std::string& attributes, const HtmlCell& of) {
  const std::string order =
      of.order.empty() ? "" : cat(" data-order=\"", escape_html(of.order), "\"");
  const std::string text = escape_html(of.text);
  return cat("<", tag, attributes, order, ">", of.sign,
             of.mark.empty() ? text : element("span", cat("class=\"", of.mark, "\""), text), "</",
             tag, ">");
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    if (length == 1) {
      out += escaped_byte(static_cast<unsigned char>(text[0]));
    } else if (length == 0 || is_invisible_control(text.substr(0, length))) {
      out += kReplacement;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string element(std::string_view name, std::string_view attributes, std::string_view content) {
  return cat("<", name, attributes.empty() ? "" : " ", attributes, ">", content, "</", name, ">");
}

std::string scroll_hint() {
  return element("p", "class=\"hint\" aria-hidden=\"true\"", "Scroll sideways for the rest →");
}

std::string html_table(const HtmlTable& table) {
  const auto kind = [&](size_t column) { return column < table.names ? " class=\"n\"" : ""; };
  std::string head;
  for (size_t i = 0; i < table.header.size(); ++i) {
    head += cell("th", cat(kind(i), " scope=\"col\""), {table.header[i], ""});
  }
  std::string body;
  for (const auto& row : table.rows) {
    body += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) body += cell("td", kind(i), row[i]);
    body += "</tr>\n";
  }
  std::string classes = table.sortable ? "sortable" : "";
  if (table.header.size() > kManyColumns) classes += classes.empty() ? "wide" : " wide";
  const std::string hint = table.header.size() > kFewColumns ? scroll_hint() : "";
  // Caption and hint stand outside the box, so that they do not scroll with it.
  return cat(element("p", "class=\"note\"", escape_html(table.caption)), hint,
             "\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"",
             escape_html(table.caption), "\"><table",
             classes.empty() ? "" : cat(" class=\"", classes, "\""), "><thead><tr>", head,
             "</tr></thead><tbody>\n", body, "</tbody></table></div>\n");
}

std::string html_page(std::string_view title, std::string_view body) {
  // The policy makes the browser itself refuse every request.
  return cat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src &#39;none&#39;; "
      "style-src &#39;unsafe-inline&#39;; script-src &#39;unsafe-inline&#39;; "
      "base-uri &#39;none&#39;; form-action &#39;none&#39;\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      escape_html(title), "</title>\n<style>", page_style(), "</style>\n</head>\n<body>\n<main>\n",
      body, "</main>\n<script>", page_script(), "</script>\n</body>\n</html>\n");
}

}  // namespace fp8kv
