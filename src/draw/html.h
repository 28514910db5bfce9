// Pieces of an HTML page: escaping, tables and the frame around the body. Knows nothing of the
// content.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fp8kv {

// Escapes `text` for the content of an element or a quoted attribute. Control characters become
// visible pictures. Invalid UTF-8 and characters that change the direction of text become U+FFFD.
// So a foreign name can neither act nor hide.
std::string escape_html(std::string_view text);

// "<name attributes>content</name>"; `attributes` and `content` are markup.
std::string element(std::string_view name, std::string_view attributes, std::string_view content);

// A line above a box that scrolls sideways. Only narrow windows show it.
std::string scroll_hint();

struct HtmlCell {
  std::string text;       // plain
  std::string order;      // sort key; "": the text
  std::string sign = {};  // markup before the text, or ""
  std::string mark = {};  // CSS class of the text, or ""
};

// A table in a box that scrolls on its own. Its first `names` columns are text, the others numbers.
struct HtmlTable {
  std::string caption;
  std::vector<std::string> header;
  std::vector<std::vector<HtmlCell>> rows;
  size_t names = 1;
  bool sortable = false;  // if scripts run
};
std::string html_table(const HtmlTable& table);

// A whole page that loads nothing. `title` is plain, `body` markup.
std::string html_page(std::string_view title, std::string_view body);

}  // namespace fp8kv
