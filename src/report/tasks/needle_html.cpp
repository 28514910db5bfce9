#include "report/tasks/needle_html.h"

#include "base/text.h"
#include "draw/html.h"
#include "report/pages/page_parts.h"
#include "report/tasks/needle_grid.h"

namespace fp8kv {
namespace {

// Grids with more columns are wider than a phone's screen. Columns have a fixed width.
constexpr size_t kColumnsOfPhone = 4;

// The class of a cell, by the share found: h0 to h3.
int shade_of(const FoundNeedles& cell) {
  if (cell.found == 0) return 0;
  if (cell.found == cell.asked) return 3;
  return 2 * cell.found < cell.asked ? 1 : 2;
}

// Lets a long number break behind its commas.
std::string breakable(std::string number) {
  for (size_t at = number.find(','); at != number.npos; at = number.find(',', at + 1)) {
    number.insert(at + 1, "<wbr/>");
  }
  return number;
}

std::string shade_legend() {
  static constexpr const char* kShades[] = {"none", "fewer than half", "half or more", "all"};
  std::string items;
  for (int i = 0; i < 4; ++i) {
    items += cat("<li><span class=\"shade h", i, "\" aria-hidden=\"true\"></span>", kShades[i],
                 "</li>\n");
  }
  return element("ul", "class=\"legend\"", items) + "\n";
}

std::string grid_table(const NeedleGrid& grid, const std::string& label) {
  const std::vector<int64_t> lengths = grid.lengths();
  std::string head = element("th", "scope=\"col\"", "depth");
  for (const int64_t length : lengths) {
    head += element("th", "scope=\"col\"", breakable(grouped(static_cast<uint64_t>(length))));
  }
  std::string body;
  for (const auto& [depth, row] : grid.rows) {
    std::string cells = element("th", "scope=\"row\"", cat(depth, "&nbsp;%"));
    for (const int64_t length : lengths) {
      const auto cell = row.find(length);
      cells += cell == row.end() ? element("td", "", "–")
                                 : element("td", cat("class=\"h", shade_of(cell->second), "\""),
                                           cat(cell->second.found, " of ", cell->second.asked));
    }
    body += element("tr", "", cells) + "\n";
  }
  return cat(lengths.size() > kColumnsOfPhone ? scroll_hint() : "",
             "\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"",
             escape_html(label), "\"><table class=\"heat\"><thead><tr>", head,
             "</tr></thead><tbody>\n", body, "</tbody></table></div>\n");
}

}  // namespace

std::string needle_pictures(const TaskReport& report) {
  if (!has_needles(report)) return "";
  std::string tiles;
  const auto add = [&](const TaskCacheReport& cache) {
    const std::string role = &cache == &report.baseline ? " (baseline)" : "";
    for (const auto& [kind, grid] : needle_grids_of(report, cache)) {
      const std::string name = cat(cache.name, role, ", ", needle_kind_name(kind));
      tiles += element("div", "",
                       element("h4", "", escape_html(name)) + "\n" +
                           grid_table(grid, cat(name, ": found by depth and length"))) +
               "\n";
    }
  };
  add(report.baseline);
  for (const TaskCacheReport& cache : report.caches) add(cache);
  return paragraph(
             "Numbers found of those asked. Rows are the depth of the number in the text, from its "
             "start to its end; columns are the length of the prompt and its answer in tokens.") +
         shade_legend() + element("div", "class=\"tiles\"", "\n" + tiles) + "\n";
}

}  // namespace fp8kv
