// Words of printed commands. Nothing that is printed to be copied into a shell is put together
// without them.
#pragma once

#include <string>
#include <string_view>

namespace fp8kv {

// `text` as one word of a shell, in one line that does nothing to a terminal: as it is, in quotes,
// or for control characters, marks that turn the direction of writing and bytes that are not UTF-8
// as $'\033', which bash, zsh, ksh and POSIX of 2024 know.
std::string shell_word(std::string_view text);

// A path as one word that no command takes for a flag: "./-x" for "-x".
std::string shell_path(std::string_view path);

}  // namespace fp8kv
