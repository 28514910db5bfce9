"""Faults that check_ptx --self-test plants, one at a time, in a copy of kernels/.

Each is (name, the kernels' source that is compiled, the file that is changed, what is replaced, by what, the
tests that run, and a pattern of what the tests or the executor then say).
"""
CUDA = "kernels/device/gpu_cuda.h"
REDUCE = "kernels/blocks/reduce.cuh"
NORM = "kernels/ops/norm.cu"
TRANSFERS = "kernels/device/transfers_runtime.cu"
TESTS_OF_LINEAR = "gpu linear: equals double precision*"
TESTS_OF_NORM = "gpu norm:*"
WRONG = r"ERROR: CHECK|element \d+ of"

FAULTS = [
    # The simulator has bodies of its own for these, so it can see none of them. The first compiles longest.
    ("ldmatrix gives two registers in the other order", "attention/attention_prefill.cu", CUDA,
     'x4.shared.b16 {%0, %1, %2, %3}', 'x4.shared.b16 {%0, %2, %1, %3}', "gpu attention: prompts in*", WRONG),
    ("an FP8 pair is encoded in the other order", "ops/rope_append.cu", CUDA,
     'cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;', 'cvt.rn.satfinite.e4m3x2.f32 %0, %2, %1;',
     "gpu rope_append: rotates a part*", WRONG),
    ("FP8 codes are decoded half by half in the other order", "ops/linear_codes.cu", CUDA,
     "mov.b32 {low, high}, %2;", "mov.b32 {high, low}, %2;", "gpu coded weights: products*", WRONG),
    ("mma takes A's registers in another order", "ops/linear_tensor.cu", CUDA,
     "{%4, %5, %6, %7}, {%8, %9}", "{%4, %6, %5, %7}, {%8, %9}", TESTS_OF_LINEAR, WRONG),
    ("cp.async copies where it should fill with zeros", "ops/linear_tensor.cu", CUDA,
     "valid ? kBytes : 0", "valid ? kBytes : kBytes", TESTS_OF_LINEAR, WRONG + "|expected them in one allocation"),
    ("a copy is used one wait too early", "ops/linear_tensor.cu", CUDA,
     '"n"(kGroupsLeft)', '"n"(kGroupsLeft + 1)', TESTS_OF_LINEAR, "nothing was written to"),
    ("a warp's exchange leaves half of the lanes out", "ops/norm.cu", NORM,
     "rms_factor(warp_sum(squares), dim, eps)", "rms_factor(lane_index() < 16 ? warp_sum(squares) : squares, dim, eps)",
     TESTS_OF_NORM, "lane"),
    ("shared memory is read without a barrier", "ops/norm.cu", REDUCE,
     "block_sync();", "", TESTS_OF_NORM, "shared"),
    ("one warp alone waits at a barrier", "ops/norm.cu", REDUCE,
     "block_sync();", "if (warp_index() == 0) block_sync();", TESTS_OF_NORM, "barrier|shared"),
    ("rows behind the last one are read", "ops/norm.cu", NORM,
     "if (row >= rows) return;", "", TESTS_OF_NORM, "expected them in one allocation"),
    ("a vector is read from an odd place", "ops/norm.cu", NORM,
     "store_vec(out + i,\n              normalised(load_vec<kCount>(x + i)",
     "store_vec(out + i,\n              normalised(load_vec<kCount>(x + i + (kCount > 1))", TESTS_OF_NORM,
     "expected a multiple of"),
    ("a block has more threads than a GPU takes", "ops/embed.cu", "kernels/ops/embed.cu",
     "constexpr int kThreads = 256;", "constexpr int kThreads = 2048;", "gpu embed*", "1,?024"),
    ("a launch takes more than 48 KiB of shared memory without permission", "ops/embed.cu",
     "kernels/device/gpu_runtime.h", "start(kernel, grid, threads, shared_bytes, stream",
     "start(kernel, grid, threads, shared_bytes + 2 * kPlainSharedBytes, stream", "gpu embed*", "shared memory"),
    # The order of the host's calls.
    ("queues do not wait for each other", "device/transfers_runtime.cu", TRANSFERS,
     "check_given(FP8KV_RUNTIME(StreamWaitEvent)", "check_given(at(mark) ? kSuccess : FP8KV_RUNTIME(StreamWaitEvent)",
     "streaming:*", "without waiting for it"),
    ("the host does not wait for a queue", "device/transfers_runtime.cu", TRANSFERS,
     "check_waited(FP8KV_RUNTIME(EventSynchronize)",
     "check_waited(at(mark) ? kSuccess : FP8KV_RUNTIME(EventSynchronize)", "streaming:*",
     "changed a source|given back while|without waiting for it"),
    ("a slot of the staging memory is filled before it was copied", "device/device_runtime.cu",
     "kernels/device/staging.h", "transfers_.wait_here(emptied_[slot_]);", "", "gpu memory: holds what the host had*",
     "changed a source"),
    ("a recorded step keeps memory that is given back", "backend/gpu_attention.cu", "kernels/backend/gpu_attention.cu",
     "if (scratch_) outgrown_.push_back(scratch_);", "", "gpu recording: attention*", "memory was given back"),
]
