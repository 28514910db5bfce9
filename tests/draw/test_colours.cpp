// The colours of series as readers with colour vision deficiencies see them. The matrices are from
// Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
// Deficiency" (2009), table 1 at severity 1. The colours are read from the page's styles: light,
// dark and print.
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "draw/page_style.h"

namespace fp8kv {
namespace {

using Triple = std::array<double, 3>;
using Matrix = std::array<Triple, 3>;

constexpr Matrix kVisions[] = {{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
                               {{{0.152286, 1.052583, -0.204868},
                                 {0.114503, 0.786281, 0.099216},
                                 {-0.003882, -0.048116, 1.051998}}},
                               {{{0.367322, 0.860646, -0.227968},
                                 {0.280085, 0.672501, 0.047413},
                                 {-0.011820, 0.042940, 0.968881}}},
                               {{{1.255528, -0.076749, -0.178779},
                                 {-0.078411, 0.930809, 0.147602},
                                 {0.004733, 0.691367, 0.303900}}}};

Triple times(const Matrix& matrix, const Triple& vector) {
  Triple product{};
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j) product[i] += matrix[i][j] * vector[j];
    product[i] = std::min(1.0, std::max(0.0, product[i]));
  }
  return product;
}

// sRGB without gamma: IEC 61966-2-1.
Triple linear(unsigned long rgb) {
  Triple out;
  for (size_t i = 0; i < 3; ++i) {
    const double c = static_cast<double>(rgb >> (16 - 8 * i) & 255) / 255;
    out[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  return out;
}

// CIELAB at D65.
Triple lab(const Triple& rgb) {
  constexpr Matrix kXyz = {{{0.4124564, 0.3575761, 0.1804375},
                            {0.2126729, 0.7151522, 0.0721750},
                            {0.0193339, 0.1191920, 0.9503041}}};
  constexpr Triple kWhite = {0.95047, 1, 1.08883};
  Triple f{};
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j) f[i] += kXyz[i][j] * rgb[j] / kWhite[i];
    f[i] = f[i] > 216.0 / 24389 ? std::cbrt(f[i]) : (24389.0 / 27 * f[i] + 16) / 116;
  }
  return {116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])};
}

double contrast(const Triple& a, const Triple& b) {
  const auto light = [](const Triple& c) { return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]; };
  const double most = std::max(light(a), light(b)), least = std::min(light(a), light(b));
  return (most + 0.05) / (least + 0.05);
}

// Every value of a custom property, in order: light, dark, print.
std::vector<unsigned long> values_of(const std::string& property) {
  const std::string style(page_style());
  const std::string start = property + ":#";
  std::vector<unsigned long> found;
  for (size_t at = style.find(start); at != style.npos; at = style.find(start, at + 1)) {
    std::string digits = style.substr(at + start.size());
    digits.resize(digits.find_first_of(";}"));
    if (digits.size() == 3) {
      digits = {digits[0], digits[0], digits[1], digits[1], digits[2], digits[2]};
    }
    found.push_back(std::stoul(digits, nullptr, 16));
  }
  REQUIRE(found.size() == 3);
  return found;
}

}  // namespace

TEST_CASE("colours: those of series differ for every kind of colour vision, and from the paper") {
  for (size_t scheme = 0; scheme < 3; ++scheme) {
    const Triple paper = linear(values_of("--paper")[scheme]);
    std::vector<Triple> colours;
    for (int i = 0; i < kSeriesStyles; ++i) {
      colours.push_back(linear(values_of(cat("--s", i))[scheme]));
      CAPTURE(i);
      CHECK(contrast(colours.back(), paper) >= 3);  // WCAG 2.2, 1.4.11
    }
    for (size_t i = 0; i < colours.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        for (const Matrix& vision : kVisions) {
          const Triple a = lab(times(vision, colours[i])), b = lab(times(vision, colours[j]));
          CAPTURE(scheme);
          CAPTURE(i);
          CAPTURE(j);
          CHECK(std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]) >= 20);
        }
      }
    }
  }
}

TEST_CASE("colours: verdicts can be read on the paper and on boxes") {
  for (size_t scheme = 0; scheme < 3; ++scheme) {
    for (const char* verdict : {"--good", "--unsure", "--bad"}) {
      for (const char* ground : {"--paper", "--box"}) {
        CAPTURE(verdict);
        CHECK(contrast(linear(values_of(verdict)[scheme]), linear(values_of(ground)[scheme])) >=
              4.5);
      }
    }
  }
}

}  // namespace fp8kv
