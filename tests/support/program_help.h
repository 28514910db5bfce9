// The commands and flags of the program, read from what its --help prints.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fp8kv::test {

struct Help {
  std::string usage;
  std::string summary;
  std::vector<std::vector<std::string>> commands;   // name, text
  std::vector<std::vector<std::string>> arguments;  // spelling, text: arguments and options
};

// A row begins at column 2, or at 6 without a short name; what is further in belongs to the row
// before.
Help help_of(const std::vector<std::string>& arguments);

// The help of every command, in the program's order.
const std::vector<std::pair<std::string, Help>>& commands();

// "-d, --data FILE..." is -d and --data.
std::set<std::string> flags_of(const Help& help);

// Without blanks at its ends.
std::string stripped(const std::string& text);

// With a blank between, where both are something.
void add_text(std::string& to, const std::string& text);

}  // namespace fp8kv::test
