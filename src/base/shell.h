// Quotes the words of printed commands. Every command printed for copying into a shell uses these
// functions.
#pragma once

#include <string>
#include <string_view>

namespace fp8kv {

// `text` as one shell word on one line that cannot control a terminal. The word is bare or quoted.
// Control characters, marks that turn the direction of writing, and bytes that are not UTF-8 become
// $'\033', which bash, zsh, ksh and POSIX of 2024 understand.
std::string shell_word(std::string_view text);

// A path as one word that no command takes for a flag: "./-x" for "-x".
std::string shell_path(std::string_view path);

}  // namespace fp8kv
