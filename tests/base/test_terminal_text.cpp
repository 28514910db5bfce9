#include <string>

#include <doctest/doctest.h>

#include "base/error_text.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace fp8kv {

TEST_CASE("terminal_line: what acts without showing is escaped, everything else stays") {
  CHECK(terminal_line("it's 'é' \"日本\" \\ \xf0\x9f\x98\x80") ==
        "it's 'é' \"日本\" \\ \xf0\x9f\x98\x80");
  CHECK(terminal_line("a\x1b[2Jb\rc\nd\te\x7f") == "a\\x1b[2Jb\\x0dc\\x0ad\\x09e\\x7f");
  CHECK(terminal_line("\u009b2J") == "\\xc2\\x9b2J");
  CHECK(terminal_line("\u202e\u2066\u061c") == "\\xe2\\x80\\xae\\xe2\\x81\\xa6\\xd8\\x9c");
  CHECK(terminal_line("\xff\xc3 \xed\xa0\x80") == "\\xff\\xc3 \\xed\\xa0\\x80");
  CHECK(terminal_line(std::string("\0", 1)) == "\\x00");
}

TEST_CASE("terminal_text: lines and tabs stay, and the marks that right-to-left texts need") {
  CHECK(terminal_text("a\n\tb\r\n\u200fc\u202e") == "a\n\tb\\x0d\n\u200fc\\xe2\\x80\\xae");
}

TEST_CASE("quote: marks that turn the direction of writing are escaped") {
  CHECK(quote("a\u061cb\u202ec") == "'a\\xd8\\x9cb\\xe2\\x80\\xaec'");
}

TEST_CASE("error_text: a message is a line, and its way out another") {
  CHECK(error_text("fp8kv: ", Error("a\nb\x1b", "c\nd")) == "fp8kv: a\\x0ab\\x1b\nhelp: c\\x0ad\n");
}

}  // namespace fp8kv
