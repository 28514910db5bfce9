// Scripts by which shells complete the program's command lines, made from the table of its flags.
#pragma once

#include <string>
#include <vector>

#include "about/command_table.h"

namespace fp8kv {

// "bash", "zsh" and "fish".
std::vector<std::string> completion_shells();

// The completion script of one shell. REQUIRES one of `completion_shells()`.
std::string completions(const CommandTable& table, const std::string& shell);

std::string bash_completions(const CommandTable& table);
std::string zsh_completions(const CommandTable& table);
std::string fish_completions(const CommandTable& table);

// "auto cpu cuda".
std::string with_blanks(const std::vector<std::string>& words);

// The description that a shell shows beside a name: the first clause of `text`.
std::string first_clause(const std::string& text);

}  // namespace fp8kv
