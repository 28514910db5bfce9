// Values to the letter. CLI11 takes "[INST] a, b [/INST]" for a list and splits it at the comma; in
// which cases, and how to prevent it, differs between its versions. So what ends in a bracket gets
// a mark at its end before the library sees it, and every option takes the mark off.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace fp8kv {

// The arguments behind the program's name, in the order that CLI::App::parse wants: the last first.
std::vector<std::string> marked_arguments(int argc, char** argv);

// One of these as it was given.
std::string unmarked(std::string argument);

// Makes all options of the commands of `app` take off the mark, before anything else is checked.
void take_off_marks(CLI::App& app);

}  // namespace fp8kv
