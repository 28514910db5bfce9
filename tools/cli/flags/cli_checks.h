// Validators of flag values. An error names the refused value and the values that are allowed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class Validator;
}

namespace fp8kv {

// Validators may rewrite a value, so options attach them with transform(). A word in either case
// becomes the listed word; a number loses its leading zeros.
CLI::Validator one_of(std::vector<std::string> allowed);

// A whole number in decimal digits, from `least` to `most`.
CLI::Validator whole_number(uint64_t least, uint64_t most = 1'000'000'000'000'000);

// A positive whole number, or "auto".
CLI::Validator a_count_or_auto();

// A number from `least` to `most`, both included.
CLI::Validator number_between(double least, double most);

// A number above `least` and at most `most`.
CLI::Validator number_above(double least, double most);

// Any path but the empty one, which an unset shell variable leaves.
CLI::Validator a_path();

// Text for the model, or "-" for standard input. Refuses the name of an existing file, which the
// user meant as a file of prompts.
CLI::Validator a_prompt();

// Text that ends an answer: UTF-8, and not the empty one.
CLI::Validator a_stop();

// I/N: one shard of a calibration.
CLI::Validator a_shard();

// A size of memory: see byte_size.h. A bare number of less than a MiB is refused.
CLI::Validator a_byte_size();

// A policy that parse_policy understands.
CLI::Validator a_policy();

// A name that kv_dtype_from_name understands.
CLI::Validator a_kv_dtype();
CLI::Validator a_plan_dtype();

// Refuses names of caches that take no stored scales, and says so. Lets all else through.
CLI::Validator a_dtype_with_scales();

}  // namespace fp8kv
