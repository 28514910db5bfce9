// The day on which the program runs, for what it makes.
#pragma once

#include <cstdint>
#include <string>

namespace fp8kv {

// Seconds since 1970: now, or SOURCE_DATE_EPOCH where that is set. Throws as run_date() does.
int64_t run_seconds();

// "2026-11-22", of UTC: today, or the day of SOURCE_DATE_EPOCH, in seconds since 1970, where that
// is set, so that a run can be repeated byte for byte
// (https://reproducible-builds.org/specs/source-date-epoch). Throws a usage Error where that is no
// such number, or after the year 9999.
std::string run_date();

}  // namespace fp8kv
