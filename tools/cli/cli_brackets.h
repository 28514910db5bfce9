// Keeps CLI11 from splitting values in brackets. It takes "[INST] a, b [/INST]" for a list and
// splits it at the comma; when it does so, and how to turn that off, differs between its versions.
// So an argument that ends in a bracket gets a mark at its end before CLI11 sees it, and every
// option takes the mark off again.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace fp8kv {

// These arguments marked, in the order that CLI::App::parse wants: the last first.
std::vector<std::string> marked(std::vector<std::string> arguments);

// One of these arguments as the user gave it.
std::string unmarked(std::string argument);

// Makes every option of the commands of `app` take off the mark before it checks its value.
void take_off_marks(CLI::App& app);

}  // namespace fp8kv
