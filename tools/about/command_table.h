// The commands and flags of the program as plain rows, for what other programs read of them:
// completions of shells, and manual pages. Made from the parser itself.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace fp8kv {

// What a shell can offer for a value.
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
  std::string text;        // as in the help, with the default
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
  std::string footer;   // what the help says below its tables
  bool hidden = false;  // not in the list of --help
};

struct CommandTable {
  CommandRow program;  // its own flags
  std::vector<CommandRow> commands;
};

// Words that may stand where the help has this name: {"DTYPE", {"auto", "fp8", ...}}. For
// "DTYPE,..." they are a list.
struct ValueWords {
  std::string metavar;
  std::vector<std::string> words;
};

CommandTable command_table(const CLI::App& app, const std::vector<ValueWords>& known);

}  // namespace fp8kv
