// Names that other tools and older versions use for our flags.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fp8kv {

// The first flag in `known` that does what another tool's flag `name` does. Returns "" for an
// unknown name, or if `known` has no such flag. `name` includes its dashes, and may have
// underscores instead of the inner ones.
std::string flag_of_others(std::string_view name, std::span<const std::string> known);

// Does the same for a misspelt name. Names of one letter are not compared: any letter would be
// near.
std::string flag_near_others(std::string_view name, std::span<const std::string> known);

// Why a command needs no flag like another tool's `name`. Returns "" if it may need one.
std::string why_needless(std::string_view name);

// Does the same as flag_of_others for a name with exactly our flag's meaning, which is accepted in
// its place.
std::string same_flag_here(std::string_view name, std::span<const std::string> known);

// All accepted pairs: the other tool's flag and ours.
std::vector<std::pair<std::string, std::string>> same_flags();

// Whether `name` is one dash and several letters, like "-ngl". CLI11 could take it for one of our
// short flags with its value.
bool is_flag_of_others(std::string_view name);

// The command that took over a flag of `command` from older versions, such as "verify". "" if the
// flag did not move.
std::string moved_to(std::string_view command, std::string_view flag);

// Whether other tools name the model with this flag, like "--model" or "-m". Here the model is an
// argument.
bool names_model(std::string_view name);

}  // namespace fp8kv
