// Reads the project's own pages: README, CONTRIBUTING and docs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fp8kv::test {

using Cells = std::vector<std::string>;

// README.md, CONTRIBUTING.md and docs/*.md, relative to the project.
std::vector<std::string> pages();
std::string page_text(const std::string& page);
std::vector<std::string> lines_of(const std::string& text);
std::vector<std::string> words_of(const std::string& text);
// The code on a page: lines of code blocks, and text in backticks.
std::vector<std::string> code_on(const std::string& page);

// Checks that `page` has a table with exactly this head and these rows. A failure shows the whole
// expected table, for pasting. "|" in cells is escaped.
// With `heading` ("### vLLM, 0.8"), the table must be between that heading and the next one.
void check_table(const std::string& page, const Cells& head, const std::vector<Cells>& rows,
                 const std::string& heading = "");

// The first column of the table with this head, without backticks. Fails without such a table.
std::vector<std::string> first_column(const std::string& page, const Cells& head);

// `text` in backticks.
std::string code(const std::string& text);

}  // namespace fp8kv::test
