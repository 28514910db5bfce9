// Compares the texts of two caches.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tasks/compare/text_difference.h"

using namespace fp8kv;

namespace {

TaskAnswer text_answer(const std::string& text, const std::vector<int32_t>& ids) {
  return {{0}, {""}, GeneratedText{text, ids, FinishReason::length}};
}

}  // namespace

TEST_CASE("text difference: texts that differ are placed by their first other token") {
  const std::vector<TaskAnswer> baseline = {text_answer("abc", {1, 2, 3}),
                                            text_answer("abd", {1, 2, 4}),
                                            text_answer("abc", {1, 2, 3}), text_answer("x", {7})};
  const std::vector<TaskAnswer> own = {text_answer("abc", {1, 2, 3}),  // identical
                                       text_answer("zbd", {9, 2, 4}),  // differs at token 1
                                       text_answer("ab", {1, 2})};     // ends before token 3
  const TextDifference difference = difference_of(own, baseline);
  CHECK(difference.compared == 3);
  CHECK(difference.identical == 1);
  CHECK(difference.median_place == 1u);
  CHECK(difference_of(std::span(own).last(1), std::span(baseline).subspan(2)).median_place == 3u);
  CHECK(!difference_of(baseline, baseline).median_place);
}

TEST_CASE("text difference: the divergence is a mean over tokens, with texts as independent") {
  std::vector<TaskAnswer> own = {text_answer("a", {1}), text_answer("b", {2}),
                                 text_answer("c", {3})};
  const std::vector<TaskAnswer> baseline = own;
  own[0].generated->divergence = {0.6, 2};
  own[1].generated->divergence = {0.1, 4};
  own[2].generated->divergence = {0.2, 4};
  const TextDifference difference = difference_of(own, baseline);
  CHECK(difference.kld == doctest::Approx(0.09));
  // Residuals from 0.09 a token: 0.42, -0.26 and -0.16.
  CHECK(difference.kld_error.value() == doctest::Approx(std::sqrt(0.2696 * 3 / 2) / 10));
  CHECK(difference_of(std::span(own).first(1), baseline).kld == doctest::Approx(0.3));
  CHECK(!difference_of(std::span(own).first(1), baseline).kld_error);
  CHECK(difference_of(baseline, baseline).kld == 0);
}
