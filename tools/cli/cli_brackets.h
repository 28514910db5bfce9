// Keeps CLI11 from splitting values in brackets. CLI11 takes "[INST] a, b [/INST]" for a list and
// splits it at the comma. Its versions differ in when they do so, and in how to turn that off. So
// an argument that ends in a bracket gets a mark at its end before CLI11 sees it. Every option
// removes the mark again.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace fp8kv {

// The arguments with marks, in reverse order, as CLI::App::parse wants them.
std::vector<std::string> marked(std::vector<std::string> arguments);

// The argument without its mark, as the user gave it.
std::string unmarked(std::string argument);

// Makes every option of `app`'s commands remove the mark before it checks its value.
void take_off_marks(CLI::App& app);

}  // namespace fp8kv
