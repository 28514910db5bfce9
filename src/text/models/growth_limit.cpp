#include "text/models/growth_limit.h"

#include "base/error.h"

namespace fp8kv {

void GrowthLimit::fail_growth() const {
  throw Error(cat(where_, ": makes more than ", human_bytes(kAnyText + kTimes * given_), " of ",
                  count_of(given_, "byte"), ", expected at most ", kTimes, " times as many and ",
                  human_bytes(kAnyText)),
              "no published tokenizer makes a text that much longer: fetch it again");
}

}  // namespace fp8kv
