// The filters of lists, dicts and other iterables.
#pragma once

#include "jinja/library/builtin.h"

namespace fp8kv::jinja {

Value filter_attr(Call& call);
Value filter_batch(Call& call);
Value filter_dictsort(Call& call);
Value filter_first(Call& call);
Value filter_groupby(Call& call);
Value filter_items(Call& call);
Value filter_join(Call& call);
Value filter_last(Call& call);
Value filter_length(Call& call);
Value filter_list(Call& call);
Value filter_max(Call& call);
Value filter_min(Call& call);
Value filter_reject(Call& call);
Value filter_rejectattr(Call& call);
Value filter_reverse(Call& call);
Value filter_select(Call& call);
Value filter_selectattr(Call& call);
Value filter_slice(Call& call);
Value filter_sort(Call& call);
Value filter_sum(Call& call);
Value filter_unique(Call& call);

}  // namespace fp8kv::jinja
