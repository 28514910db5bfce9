#include <cmath>

#include <doctest/doctest.h>

#include "report/loss_places.h"

using namespace fp8kv;

namespace {

TokenFigures figures() {
  TokenFigures of;
  of.tokens = 1000;
  of.first_tokens = 30;
  of.first_kld = 0.2;
  of.first_kld_error = 0.03;
  of.later_kld = 0.01;
  of.later_kld_error = 0.001;
  of.kld = (30 * 0.2 + 970 * 0.01) / 1000;
  of.heavy_share = 0.4;
  return of;
}

}  // namespace

TEST_CASE("loss_places: first tokens are named if they lose clearly more, and enough to matter") {
  CHECK(
      loss_places_words(figures()) ==
      "The first 16 tokens of a window (sinks) lose 0.2 ± 0.03 nats each, 38 % of the whole; later "
      "ones lose 0.01 ± 0.001.");
  TokenFigures noisy = figures();
  noisy.first_kld_error = 0.1;
  CHECK(loss_places_words(noisy) == "");
  TokenFigures few = figures();
  few.first_tokens = 3;
  few.kld = (3 * 0.2 + 997 * 0.01) / 1000;
  CHECK(loss_places_words(few) == "");
  TokenFigures all = figures();  // every token is a first one
  all.tokens = 30;
  all.kld = 0.2;
  all.later_kld = 0;
  CHECK(loss_places_words(all) == "");
}

TEST_CASE("loss_places: heavy tokens are named if half of the loss is theirs") {
  TokenFigures heavy = figures();
  heavy.heavy_share = 0.62;
  CHECK(loss_places_words(heavy).ends_with(
      "0.01 ± 0.001. One token in a hundred carries 62 % of the loss."));
  heavy.first_kld_error = 0.1;
  CHECK(loss_places_words(heavy) == "One token in a hundred carries 62 % of the loss.");
  TokenFigures short_text = heavy;
  short_text.tokens = 99;
  CHECK(loss_places_words(short_text) == "");
  for (const double kld : {0.0, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    heavy.kld = kld;
    CHECK(loss_places_words(heavy) == "");
  }
}

TEST_CASE("loss_places: layers whose first tokens have the largest values by far are named") {
  const FirstTokenAmax plain{3, 4, 1, 2}, far_k{8, 4, 1, 2}, far_both{9, 4, 4, 1}, none{};
  CHECK(first_tokens_words({plain, none}) == "");
  CHECK(
      first_tokens_words({plain, far_k, none, far_both}) ==
      "The first token of a window, an attention sink, has the largest values by a factor of 2 or "
      "more: K of layers 1 and 3 and V of layer 3.");
}
