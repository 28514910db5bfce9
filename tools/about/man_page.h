// Manual pages, made from the table of the program's flags.
#pragma once

#include <string>

#include "about/command_table.h"

namespace fp8kv {

// fp8kv.1: what the program is, and its commands. In the macros of man(7), without a date, so that
// the same sources give the same bytes.
std::string program_page(const CommandTable& table);

// fp8kv-NAME.1.
std::string command_page(const CommandRow& command);

}  // namespace fp8kv
