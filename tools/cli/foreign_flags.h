// Flags as other tools and older versions call them, for people who come from there.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fp8kv {

// The first of our flags for the same that is in `known`; "" where the name is not known, or none
// of ours is there. `name` has its dashes, and may have underscores instead of those inside.
std::string flag_of_others(std::string_view name, std::span<const std::string> known);

// The same, for a name that is only near one of theirs; of one letter, every letter is near.
std::string flag_near_others(std::string_view name, std::span<const std::string> known);

// The same as flag_of_others, for a name that means exactly what ours does, and is taken in its
// place.
std::string same_flag_here(std::string_view name, std::span<const std::string> known);

// All of those: theirs and ours.
std::vector<std::pair<std::string, std::string>> same_flags();

// "-ngl" and the like: one dash and several letters, which could be taken for a short flag of ours
// with its value.
bool is_flag_of_others(std::string_view name);

// The command that does what a flag of `command` did in older versions: "verify"; "" for no such
// flag.
std::string moved_to(std::string_view command, std::string_view flag);

// "--model", "-m": what others have for the model, which is an argument here.
bool names_model(std::string_view name);

}  // namespace fp8kv
