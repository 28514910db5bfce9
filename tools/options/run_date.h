// The date of this run, which files record.
#pragma once

#include <cstdint>
#include <string>

namespace fp8kv {

// Seconds since 1970: SOURCE_DATE_EPOCH if set, else now. Throws like run_date().
int64_t run_seconds();

// The date in UTC, "2026-11-22": the day of SOURCE_DATE_EPOCH if set, else today. SOURCE_DATE_EPOCH
// makes runs repeatable byte for byte (https://reproducible-builds.org/specs/source-date-epoch).
// Throws a usage Error if it is not a whole number of seconds since 1970, or is after the year
// 9999.
std::string run_date();

}  // namespace fp8kv
