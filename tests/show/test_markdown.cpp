#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "show/markdown.h"

using namespace fp8kv;

TEST_CASE("markdown: markup in foreign text is escaped, and names stay readable") {
  CHECK(markdown_text("fp8_e4m3 _a_ *b* <b>&amp; [x](y) a|b `c` \\ #1 ~~s~~ $x$") ==
        R"(fp8_e4m3 \_a\_ \*b\* \<b\>\&amp; \[x\](y) a\|b \`c\` \\ \#1 \~\~s\~\~ \$x\$)");
}

TEST_CASE("markdown: a text stays on its line, and control characters show") {
  CHECK(markdown_text("a\nb\x1b[31m") == R"(a b\\x1b\[31m)");
}

TEST_CASE("markdown: a table has a rule below its header, with the side of each column") {
  CHECK(markdown_table({{"cache", "KLD"}, {"a|b", "0.1"}}, {true, false}) ==
        "| cache | KLD |\n|---|--:|\n| a\\|b | 0.1 |\n\n");
}

TEST_CASE("markdown: lists and commands, and nothing without lines") {
  const std::vector<std::string> lines = {"one", "two\n```"};
  CHECK(markdown_list(lines) == "- one\n- two \\`\\`\\`\n\n");
  CHECK(markdown_commands(lines) == "```sh\none\ntwo ```\n```\n\n");
  CHECK(markdown_list({}).empty());
  CHECK(markdown_commands({}).empty());
}
