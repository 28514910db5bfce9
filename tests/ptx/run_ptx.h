// Runs a few lines of PTX on one warp or block, and returns the values that each thread stored.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "base/machine/thread_pool.h"
#include "kernels/ptx/decode.h"
#include "kernels/ptx/launch.h"
#include "kernels/ptx/machine/parse.h"

namespace fp8kv::test {

// The lines run in a kernel with declared registers. %t is the thread. %in and %out are the
// addresses of the thread's `in_words` and `out_words` words of 32 bits.
struct PtxScene {
  std::string lines;
  uint32_t in_words = 1;
  uint32_t out_words = 1;
  uint32_t threads = 32;
  size_t shared_bytes = 0;
  uint64_t seed = 0;
  std::string rules = {};
};

inline std::string kernel_text(const PtxScene& scene) {
  return cat(
      ".version 9.0\n.target sm_90\n.extern .shared .align 16 .b8 shared[];\n"
      ".entry scene(.param .u64 scene_in, .param .u64 scene_out) ",
      scene.rules,
      " {\n"
      ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<32>; .reg .f32 %f<16>;\n"
      ".reg .b64 %d<8>; .reg .f64 %g<4>; .reg .b64 %in; .reg .b64 %out; .reg .b32 %t;\n"
      "mov.u32 %t, %tid.x;\n"
      "ld.param.u64 %d0, [scene_in];\nld.param.u64 %d1, [scene_out];\n"
      "mad.lo.u64 %in, 0, 0, %d0;\nmad.lo.u64 %out, 0, 0, %d1;\n"
      "mul.wide.u32 %d2, %t, ",
      4 * scene.in_words, ";\nadd.s64 %in, %in, %d2;\nmul.wide.u32 %d2, %t, ", 4 * scene.out_words,
      ";\nadd.s64 %out, %out, %d2;\n", scene.lines, "\nret;\n}\n");
}

// `in` has in_words words for each thread. The result has out_words words for each thread.
inline std::vector<uint32_t> run_ptx(const PtxScene& scene, const std::vector<uint32_t>& in = {}) {
  const std::string text = kernel_text(scene);
  const ptx::Program program = ptx::decode(ptx::parse_kernel(ptx::find_kernels(text).at(0)));
  ptx::GlobalMemory memory(1 << 20);
  std::vector<uint32_t> out(size_t{scene.threads} * scene.out_words, 0xABABABAB);
  std::byte* from = memory.allocate(in.size() * 4);
  std::byte* to = memory.allocate(out.size() * 4);
  if (!in.empty()) std::memcpy(from, in.data(), in.size() * 4);
  std::memcpy(to, out.data(), out.size() * 4);
  std::byte parameters[16];
  std::memcpy(parameters, &from, 8);
  std::memcpy(parameters + 8, &to, 8);
  ptx::Launch launch;
  launch.block = {scene.threads, 1, 1};
  launch.shared_bytes = scene.shared_bytes;
  launch.seed = scene.seed;
  launch.parameters = parameters;
  if (const std::string why = ptx::why_not(program, launch); !why.empty()) fail(why);
  ThreadPool pool(1);
  ptx::run_grid(program, launch, memory, pool);
  std::memcpy(out.data(), to, out.size() * 4);
  return out;
}

}  // namespace fp8kv::test
