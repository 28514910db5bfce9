// Names the places at which a cache loses most and has its largest values: the first tokens of a
// window, which act as attention sinks, and a few heavy tokens.
#pragma once

#include <string>
#include <vector>

#include "eval/eval_report.h"

namespace fp8kv {

// Says what the first kFirstTokens tokens of a window lose and what later ones lose. Says so only
// if the difference is above two standard errors, and a tenth of the loss or more is theirs. Adds
// the share of one token in a hundred if that is half of the loss or more, and there are a hundred
// tokens. Else "".
std::string loss_places_words(const TokenFigures& figures);

// Names the layers in which K or V of a window's first token is at least twice as large as that of
// any later token; "" without such layers.
std::string first_tokens_words(const std::vector<FirstTokenAmax>& layers);

}  // namespace fp8kv
