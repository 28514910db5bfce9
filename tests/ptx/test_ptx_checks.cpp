// The executor refuses code that a GPU would fault on, or would silently run wrong.
#include <doctest/doctest.h>

#include "ptx/run_ptx.h"

namespace fp8kv {
namespace {

// The executor's error about the lines, or "".
std::string fault_of(const test::PtxScene& scene) {
  try {
    test::run_ptx(scene, std::vector<uint32_t>(size_t{scene.threads} * scene.in_words, 1));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

void has(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != text.npos);
}

}  // namespace

TEST_CASE("ptx checks: an access must lie in an allocation, and a fault names who did it") {
  const std::string fault =
      fault_of({.lines = "setp.eq.s32 %p1, %t, 5;\n@%p1 ld.global.u32 %r0, [%in+1024];"});
  has(fault, "scene: '@%p1 ld.global.u32 %r0, [%in+1024]', block (0, 0, 0), thread 5: 4 bytes");
  has(fault, "expected them in one allocation");
  CHECK(fault_of({.lines = "ld.global.u32 %r0, [%in];"}) == "");
  has(fault_of({.lines = "ld.global.u32 %r0, [%in+-4];"}), "thread 0");
}

TEST_CASE("ptx checks: addresses are multiples of what is read") {
  has(fault_of({.lines = "ld.global.u32 %r0, [%in+2];"}), "expected a multiple of 4");
  has(fault_of({.lines = "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%in+4];", .in_words = 8}),
      "expected a multiple of 16");
  has(fault_of({.lines = "mov.u32 %r0, 2;\nst.shared.u32 [%r0], %t;", .shared_bytes = 64}),
      "expected a multiple of 4");
}

TEST_CASE("ptx checks: shared memory ends") {
  CHECK(fault_of({.lines = "shl.b32 %r0, %t, 2;\nst.shared.u32 [%r0], %t;", .shared_bytes = 128}) ==
        "");
  has(fault_of({.lines = "shl.b32 %r0, %t, 2;\nst.shared.u32 [%r0], %t;", .shared_bytes = 124}),
      "thread 31");
}

TEST_CASE("ptx checks: a register or a word of shared memory must be written before it is read") {
  has(fault_of({.lines = "add.s32 %r1, %r2, 1;"}), "reads a register that nothing was written to");
  has(fault_of({.lines = "setp.lt.u32 %p1, %t, 7;\n@%p1 mov.u32 %r2, 1;\nadd.s32 %r1, %r2, 1;"}),
      "thread 7");
  // Copying an unwritten register does no harm.
  CHECK(fault_of({.lines = "mov.u32 %r1, %r2;"}) == "");
  has(fault_of({.lines = "mov.u32 %r1, %r2;\nadd.s32 %r1, %r1, 1;"}), "nothing was written to");
  has(fault_of({.lines = "shl.b32 %r0, %t, 2;\nld.shared.u32 %r1, [%r0];", .shared_bytes = 128}),
      "reads bytes that nothing was written to");
}

TEST_CASE("ptx checks: instructions of a warp need their lanes") {
  const std::string parted = "setp.lt.u32 %p1, %t, 7;\n@%p1 bra $end;\n";
  has(fault_of({.lines = parted + "shfl.sync.idx.b32 %r1|%p2, %t, 0, 31, -1;\nbra $over;\n$end:\n"
                                  "vote.sync.ballot.b32 %r2, %p1, -1;\n$over:"}),
      "divergence");
  has(fault_of({.lines = "setp.lt.u32 %p1, %t, 7;\n"
                         "@%p1 shfl.sync.idx.b32 %r1|%p2, %t, 0, 31, -1;"}),
      "only some lanes execute it");
  has(fault_of({.lines = "setp.lt.u32 %p1, %t, 7;\n@%p1 ret;\n"
                         "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %t;"}),
      "needs all 32 lanes");
  // No lane waits for lanes that have left, but their values cannot be read.
  has(fault_of({.lines = "setp.lt.u32 %p1, %t, 7;\n@%p1 ret;\n"
                         "shfl.sync.idx.b32 %r1|%p2, %t, 0, 31, -1;"}),
      "reads from a lane that is not there");
  has(fault_of({.lines = "shfl.sync.idx.b32 %r1|%p2, %t, 0, 31, 255;"}), "not in the mask");
}

TEST_CASE("ptx checks: all threads of a block reach its barrier") {
  CHECK(fault_of({.lines = "bar.sync 0;", .threads = 80}) == "");
  has(fault_of({.lines = "setp.ge.u32 %p1, %t, 32;\n@%p1 ret;\nbar.sync 0;", .threads = 64}),
      "some of warp 1 have left");
  has(fault_of({.lines = "setp.lt.u32 %p1, %t, 5;\n@%p1 bar.sync 0;"}), "only some lanes");
}

TEST_CASE("ptx checks: warps that share memory meet in between, in whatever order they run") {
  const std::string write = "shl.b32 %r0, %t, 2;\nst.shared.u32 [%r0], %t;\n";
  const std::string read = "xor.b32 %r1, %r0, 128;\nld.shared.u32 %r2, [%r1];\n";
  for (const uint64_t seed : {0, 1, 2, 3}) {
    CAPTURE(seed);
    const auto scene = [&](const std::string& lines) {
      return test::PtxScene{.lines = lines, .threads = 64, .shared_bytes = 256, .seed = seed};
    };
    CHECK(fault_of(scene(write + "bar.sync 0;\n" + read)) == "");
    CHECK(fault_of(scene(write + read)) != "");
    has(fault_of(scene(write + "bar.sync 0;\n" + read + "st.shared.u32 [%r0], %t;")),
        "since the last barrier");
    has(fault_of(scene("mov.u32 %r0, 0;\nst.shared.u32 [%r0], %t;")), "since the last barrier");
    // Atomic operations may conflict.
    CHECK(fault_of(scene("mov.u32 %r0, 0;\nsetp.eq.u32 %p1, %t, 0;\n@%p1 st.shared.u32 [%r0], 0;\n"
                         "bar.sync 0;\natom.shared.add.u32 %r1, [%r0], 1;")) == "");
  }
}

TEST_CASE("ptx checks: a copy overwrites nothing that another warp still reads") {
  const std::string lines =
      "and.b32 %r1, %t, 31;\nshl.b32 %r0, %r1, 2;\nsetp.lt.u32 %p1, %t, 32;\n"
      "@%p1 st.shared.u32 [%r0], %t;\nbar.sync 0;\n@!%p1 ld.shared.u32 %r2, [%r0];\n";
  const std::string copy = "@%p1 cp.async.ca.shared.global [%r0], [%in], 4, 4;\n";
  const test::PtxScene scene{.lines = lines + copy, .threads = 64, .shared_bytes = 128, .seed = 0};
  test::PtxScene kept = scene;
  kept.lines = lines + "bar.sync 0;\n" + copy;
  CHECK(fault_of(kept) == "");
  CHECK(fault_of(scene) != "");
}

TEST_CASE("ptx checks: a launch keeps to its bounds and to the device's") {
  has(fault_of({.lines = "ret;", .threads = 96, .rules = ".maxntid 64, 1, 1"}),
      "a block of 96 threads, its launch bounds allow 64");
  has(fault_of({.lines = "ret;", .shared_bytes = 48 * 1024 + 4}), "the kernel was given 49152");
  has(fault_of({.lines = "ret;", .threads = 1025}), "from 1 to 1024");
  const std::string text = test::kernel_text({.lines = ""});
  const ptx::Program program = ptx::decode(ptx::parse_kernel(ptx::find_kernels(text).at(0)));
  const std::byte parameters[16] = {};
  ptx::Launch launch;
  launch.parameters = parameters;
  launch.grid = {1, 1, 65535};
  CHECK(ptx::why_not(program, launch) == "");
  launch.grid = {1, 1, 65536};
  has(ptx::why_not(program, launch), "a grid of 1 x 1 x 65536 blocks");
  launch.grid = {1, 65536, 1};
  has(ptx::why_not(program, launch), "65535 are possible");
}

}  // namespace fp8kv
