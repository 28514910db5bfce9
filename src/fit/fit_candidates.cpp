#include "fit/fit_candidates.h"

namespace fp8kv {

CandidateReport fit_candidate(const FitFormat& format, std::vector<int64_t> left) {
  CandidateReport made;
  made.name = made.dtype_name = format.name;
  made.dtype = format.type;
  made.scales = format.scales;
  made.skipped = std::move(left);
  return made;
}

}  // namespace fp8kv
