// Instructions in which lanes work together, checked against the fragments in the PTX ISA's
// figures.
#include <bit>
#include <cmath>

#include <doctest/doctest.h>

#include "ptx/run_ptx.h"

namespace fp8kv {
namespace {

using test::run_ptx;

// Small whole numbers, whose products and sums are exact in f16 and bf16.
int small(int i) {
  return i * 7 % 11 - 5;
}

uint32_t f16_of(int x) {
  if (x == 0) return 0;
  int exponent = 0;
  const double mantissa = std::frexp(std::abs(x), &exponent);
  const auto bits = static_cast<uint32_t>(std::ldexp(mantissa, 11)) & 0x3FF;
  return (x < 0 ? 0x8000u : 0u) | static_cast<uint32_t>(exponent + 14) << 10 | bits;
}

uint32_t bf16_of(int x) {
  return std::bit_cast<uint32_t>(static_cast<float>(x)) >> 16;
}

}  // namespace

TEST_CASE("ptx: mma m16n8k16 multiplies matrices that lie as the manual's figures say") {
  int a[16][16], b[16][8], c[16][8];
  for (int i = 0; i < 256; ++i) a[i / 16][i % 16] = small(i);
  for (int i = 0; i < 128; ++i) b[i / 8][i % 8] = small(3 * i + 1);
  for (int i = 0; i < 128; ++i) c[i / 8][i % 8] = small(5 * i + 2);
  for (const char* type : {"f16", "bf16"}) {
    CAPTURE(type);
    const auto code = [&](int x) { return type[0] == 'f' ? f16_of(x) : bf16_of(x); };
    std::vector<uint32_t> in;
    for (int lane = 0; lane < 32; ++lane) {
      const int group = lane >> 2, thread = lane % 4;
      for (int i = 0; i < 8; i += 2) {  // a0 to a7, figure "Matrix A fragment for .f16 and .bf16"
        const int row = (i < 2 || (4 <= i && i < 6)) ? group : group + 8;
        const int col = thread * 2 + (i < 4 ? 0 : 8);
        in.push_back(code(a[row][col]) | code(a[row][col + 1]) << 16);
      }
      for (int i = 0; i < 4; i += 2) {
        const int row = thread * 2 + (i < 2 ? 0 : 8);
        in.push_back(code(b[row][group]) | code(b[row + 1][group]) << 16);
      }
      for (int i = 0; i < 4; ++i) {
        const int row = i < 2 ? group : group + 8;
        in.push_back(std::bit_cast<uint32_t>(static_cast<float>(c[row][thread * 2 + (i & 1)])));
      }
      in.resize(in.size() + 2);  // aligns rows to 16 bytes
    }
    const std::string lines =
        cat("ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%in];\nld.global.u32 %r4, [%in+16];\n"
            "ld.global.u32 %r5, [%in+20];\n"
            "ld.global.f32 %f0, [%in+24];\nld.global.f32 %f1, [%in+28];\n"
            "ld.global.f32 %f2, [%in+32];\nld.global.f32 %f3, [%in+36];\n"
            "mma.sync.aligned.m16n8k16.row.col.f32.",
            type, ".", type,
            ".f32 {%f4, %f5, %f6, %f7}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3};\n"
            "st.global.v4.f32 [%out], {%f4, %f5, %f6, %f7};");
    const auto out = run_ptx({.lines = lines, .in_words = 12, .out_words = 4}, in);
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < 4; ++i) {
        const int row = (lane >> 2) + (i < 2 ? 0 : 8), col = lane % 4 * 2 + (i & 1);
        int sum = c[row][col];
        for (int k = 0; k < 16; ++k) sum += a[row][k] * b[k][col];
        CHECK(std::bit_cast<float>(out[static_cast<size_t>(lane * 4 + i)]) ==
              static_cast<float>(sum));
      }
    }
  }
}

TEST_CASE(
    "ptx: ldmatrix gives each lane two neighbours of each matrix, and .trans of its transpose") {
  for (const bool transposed : {false, true}) {
    CAPTURE(transposed);
    // Thread t writes row t: matrix t / 8, row t % 8; its halves are 1000 matrix + 8 row + column.
    std::vector<uint32_t> in;
    for (uint32_t t = 0; t < 32; ++t) {
      for (uint32_t pair = 0; pair < 4; ++pair) {
        const uint32_t first = t / 8 * 1000 + t % 8 * 8 + pair * 2;
        in.push_back(first | (first + 1) << 16);
      }
    }
    const std::string lines =
        cat("ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%in];\nshl.b32 %r4, %t, 4;\n"
            "mov.u32 %r5, shared;\nadd.s32 %r5, %r5, %r4;\n"
            "st.shared.v4.u32 [%r5], {%r0, %r1, %r2, %r3};\nbar.warp.sync -1;\n"
            "ldmatrix.sync.aligned.m8n8.x4.",
            transposed ? "trans." : "",
            "shared.b16 {%r0, %r1, %r2, %r3}, [%r5];\n"
            "st.global.v4.u32 [%out], {%r0, %r1, %r2, %r3};");
    const auto out =
        run_ptx({.lines = lines, .in_words = 4, .out_words = 4, .shared_bytes = 512}, in);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      for (uint32_t matrix = 0; matrix < 4; ++matrix) {
        const uint32_t row = lane / 4, col = lane % 4 * 2;
        const uint32_t first = transposed ? 8 * col + row : 8 * row + col;
        const uint32_t second = transposed ? 8 * (col + 1) + row : 8 * row + col + 1;
        CHECK(out[lane * 4 + matrix] == ((matrix * 1000 + first) | (matrix * 1000 + second) << 16));
      }
    }
  }
}

TEST_CASE("ptx: movmatrix transposes a matrix of halves") {
  std::vector<uint32_t> in;
  for (uint32_t lane = 0; lane < 32; ++lane) in.push_back(2 * lane | (2 * lane + 1) << 16);
  const auto out = run_ptx({.lines = "ld.global.u32 %r0, [%in];\n"
                                     "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r0;\n"
                                     "st.global.u32 [%out], %r1;"},
                           in);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t row = lane / 4, col = lane % 4 * 2;
    CHECK(out[lane] == ((8 * col + row) | (8 * (col + 1) + row) << 16));
  }
}

TEST_CASE("ptx: shfl takes from the lane that its mode names, within its segment") {
  struct Case {
    const char* mode;
    int by;
    int limits;
    int (*from)(int lane);  // the source lane; -1: its own lane, with a false predicate
  };
  // For segments of 8 lanes, bits 8 to 12 hold the mask 24. The clamp is 7, or 0 for up.
  const Case cases[] = {
      {"bfly", 5, 31, [](int lane) { return lane ^ 5; }},
      {"idx", 9, 31, [](int) { return 9; }},
      {"idx", 3, 24 << 8 | 7, [](int lane) { return lane / 8 * 8 + 3; }},
      {"down", 2, 24 << 8 | 7, [](int lane) { return lane % 8 < 6 ? lane + 2 : -1; }},
      {"up", 3, 24 << 8, [](int lane) { return lane % 8 >= 3 ? lane - 3 : -1; }},
      {"up", 1, 0, [](int lane) { return lane - 1; }},
      {"down", 1, 31, [](int lane) { return lane < 31 ? lane + 1 : -1; }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.mode);
    CAPTURE(c.limits);
    const std::string lines =
        cat("mul.lo.s32 %r0, %t, 3;\nshfl.sync.", c.mode, ".b32 %r1|%p1, %r0, ", c.by, ", ",
            c.limits, ", -1;\nselp.b32 %r2, 1, 0, %p1;\nst.global.v2.u32 [%out], {%r1, %r2};");
    const auto out = run_ptx({.lines = lines, .out_words = 2});
    for (int lane = 0; lane < 32; ++lane) {
      const int from = c.from(lane);
      CHECK(out[static_cast<size_t>(2 * lane)] ==
            static_cast<uint32_t>(3 * (from < 0 ? lane : from)));
      CHECK(out[static_cast<size_t>(2 * lane + 1)] == (from >= 0 ? 1 : 0));
    }
  }
}

TEST_CASE("ptx: a ballot has the bits of the lanes whose predicate holds") {
  const auto out =
      run_ptx({.lines = "and.b32 %r0, %t, 3;\nsetp.eq.s32 %p1, %r0, 1;\n"
                        "vote.sync.ballot.b32 %r1, %p1, -1;\nst.global.u32 [%out], %r1;"});
  CHECK(out[0] == 0x22222222);
  CHECK(out[31] == 0x22222222);
}

TEST_CASE("ptx: lanes part at a branch and meet again behind it") {
  const auto out = run_ptx({.lines = "mov.u32 %r1, 0;\n"
                                     "$again:\nadd.s32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, %t;\n"
                                     "@%p1 bra $again;\n"
                                     "vote.sync.ballot.b32 %r2, %p1, -1;\nadd.s32 %r1, %r1, %r2;\n"
                                     "st.global.u32 [%out], %r1;"});
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == std::max(1u, lane));
}

TEST_CASE("ptx: cp.async fills the rest with zeros, and arrives by groups") {
  std::vector<uint32_t> in;
  for (uint32_t i = 0; i < 32 * 4; ++i) in.push_back(i + 1);
  // Even threads copy all 16 bytes. Odd threads copy none.
  const auto copy_by = [](const std::string& opcode) {
    return "shl.b32 %r0, %t, 4;\nand.b32 %r1, %t, 1;\nsetp.eq.s32 %p1, %r1, 0;\n"
           "selp.b32 %r2, 16, 0, %p1;\n" +
           opcode + " [%r0], [%in], 16, %r2;\ncp.async.commit_group;\n";
  };
  const std::string end =
      "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r0];\n"
      "st.global.v4.u32 [%out], {%r4, %r5, %r6, %r7};";
  for (const char* opcode : {"cp.async.cg.shared.global", "cp.async.cg.shared.global.L2::128B"}) {
    CAPTURE(opcode);
    test::PtxScene scene{.lines = copy_by(opcode) + "cp.async.wait_group 0;\n" + end,
                         .in_words = 4,
                         .out_words = 4,
                         .shared_bytes = 512};
    const auto out = run_ptx(scene, in);
    for (uint32_t i = 0; i < out.size(); ++i) CHECK(out[i] == (i / 4 % 2 == 0 ? i + 1 : 0));
    // wait_group 1 lets one group stay on its way.
    scene.lines = copy_by(opcode) + "cp.async.wait_group 1;\n" + end;
    CHECK_THROWS_AS(run_ptx(scene, in), Error);
  }
}

TEST_CASE("ptx: atomic additions of all lanes count, and return what was before") {
  const auto out =
      run_ptx({.lines = "ld.param.u64 %d3, [scene_in];\n"
                        "atom.global.add.u32 %r1, [%d3], 2;\nst.global.u32 [%out], %r1;"},
              std::vector<uint32_t>(32, 0));
  uint32_t all = 0;
  for (const uint32_t before : out) {
    CHECK(before % 2 == 0);
    all |= 1u << before / 2;
  }
  CHECK(all == 0xFFFFFFFF);
}

}  // namespace fp8kv
