// What a flag accepts. A value that is not accepted is named in the error with what was expected.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class Validator;
}

namespace fp8kv {

// What these take may be put into the form that is expected, for which an option needs them by
// transform(): one of a few words, in either case, becomes the word as it is listed, and a number
// loses its leading zeros.
CLI::Validator one_of(std::vector<std::string> allowed);

// A whole number in decimal digits, from `least` to `most`.
CLI::Validator whole_number(uint64_t least, uint64_t most = 1'000'000'000'000'000);

// A positive whole number, or "auto".
CLI::Validator a_count_or_auto();

// A number from `least` to `most`, both included.
CLI::Validator number_between(double least, double most);

// A number above `least` and at most `most`.
CLI::Validator number_above(double least, double most);

// Any path but the empty one, which is what an unset shell variable leaves.
CLI::Validator a_path();

// Text for the model, or "-": standard input. Not the name of a file that is there, which was meant
// to be read.
CLI::Validator a_prompt();

// I/N: one shard of a calibration.
CLI::Validator a_shard();

// A size of memory: see byte_size.h. A bare number of less than a MiB is refused.
CLI::Validator a_byte_size();

// What parse_policy understands.
CLI::Validator a_policy();

// A name that kv_dtype_from_name understands.
CLI::Validator a_kv_dtype();
CLI::Validator a_plan_dtype();

}  // namespace fp8kv
