// The commands and flags of the program, read from its --help.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fp8kv::test {

struct Help {
  std::string usage;
  std::string summary;
  std::vector<std::vector<std::string>> commands;   // name and text
  std::vector<std::vector<std::string>> arguments;  // spelling and text of arguments and options
};

// Reads --help. A row begins at column 2, or at 6 without a short name. Text further in continues
// the row before.
Help help_of(const std::vector<std::string>& arguments);

// The help of every command, in the program's order.
const std::vector<std::pair<std::string, Help>>& commands();

// The flags in rows such as "-d, --data FILE...": -d and --data.
std::set<std::string> flags_of(const Help& help);

// `text` without blanks at its ends.
std::string stripped(const std::string& text);

// Appends `text`, after a blank if both are not empty.
void add_text(std::string& to, const std::string& text);

}  // namespace fp8kv::test
