// The program's commands and flags as plain rows, made from the parser itself. Shell completions
// and manual pages are made from these rows.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace fp8kv {

// The kind of a value, by what a shell can offer for it.
enum class ValueKind {
  none,   // the flag takes no value
  words,  // one of `words`
  list,   // several of `words`, with commas between them
  path,   // a file or folder
  other   // a number, a text: nothing to offer
};

// An argument, or a flag with what follows it.
struct ArgumentRow {
  std::string short_name;  // "-o"; "" for none
  std::string long_name;   // "--out"; "" for an argument without a flag
  std::string metavar;     // "FILE"; "" where no value follows
  std::string text;        // the text of the help, with the default
  ValueKind kind = ValueKind::none;
  std::vector<std::string> words;
  bool repeats = false;  // may be given again
};

struct CommandRow {
  std::string name;     // "calibrate"
  std::string summary;  // one sentence, without its full stop
  std::string usage;    // "fp8kv calibrate MODEL --data FILE... [OPTIONS]"
  std::vector<ArgumentRow> arguments;
  std::vector<ArgumentRow> flags;
  std::string footer;   // the text below the tables of the help
  bool hidden = false;  // not in the list of --help
};

struct CommandTable {
  CommandRow program;  // its own flags
  std::vector<CommandRow> commands;
};

// The values that a metavar of the help stands for: {"DTYPE", {"auto", "fp8", ...}}. They also
// apply to the list form, "DTYPE,...".
struct ValueWords {
  std::string metavar;
  std::vector<std::string> words;
};

CommandTable command_table(const CLI::App& app, const std::vector<ValueWords>& known);

}  // namespace fp8kv
