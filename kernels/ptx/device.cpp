#include "kernels/ptx/device.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "kernels/ptx/decode.h"
#include "kernels/ptx/fat_binary.h"
#include "kernels/ptx/machine/kernel_name.h"

namespace fp8kv::ptx {
namespace {

constexpr uint64_t kMemory = uint64_t{8} << 30;

}  // namespace

EmulatedDevice::EmulatedDevice(const Settings& settings)
    : settings_(settings), memory_(kMemory), pool_(settings.threads) {}

EmulatedDevice::~EmulatedDevice() {
  if (settings_.kernels.empty()) return;
  std::string lines;
  for (const auto& kernel : kernels_) {
    lines += cat(kernel->launches, " ", readable_name(kernel->text.name), "\n");
  }
  // Writes all lines at once, since several processes may append to one file.
  if (FILE* file = std::fopen(settings_.kernels.c_str(), "a")) {
    std::setvbuf(file, nullptr, _IOFBF, lines.size() + 1);
    std::fwrite(lines.data(), 1, lines.size(), file);
    std::fclose(file);
  }
}

EmulatedDevice::Module* EmulatedDevice::load(const void* container) {
  const std::lock_guard lock(mutex_);
  modules_.push_back(std::make_unique<Module>());
  for (const PtxText& ptx : ptx_texts(container)) {
    if (ptx.target != settings_.target) continue;
    for (KernelText& text : find_kernels(ptx.text)) {
      kernels_.push_back(std::make_unique<Kernel>());
      kernels_.back()->text = std::move(text);
      modules_.back()->emplace(kernels_.back()->text.name, kernels_.back().get());
    }
  }
  return modules_.back().get();
}

void EmulatedDevice::bind(const void* host_function, Module& module, const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = module.find(name);
  if (found != module.end()) bound_[host_function] = found->second;
}

Kernel* EmulatedDevice::find(const void* host_function) {
  const std::lock_guard lock(mutex_);
  const auto found = bound_.find(host_function);
  return found == bound_.end() ? nullptr : found->second;
}

EmulatedDevice::Work EmulatedDevice::prepare(Kernel& kernel, Extent grid, Extent block,
                                             size_t shared_bytes, void** arguments) {
  const std::lock_guard lock(mutex_);
  if (!kernel.program) kernel.program = decode(parse_kernel(kernel.text));
  const Program& program = *kernel.program;
  std::vector<std::byte> parameters(program.parameter_bytes);
  for (size_t i = 0; i < program.parameters.size(); ++i) {
    const Parameter& each = program.parameters[i];
    std::memcpy(&parameters[each.offset], arguments[i], each.bytes);
  }
  Launch launch{grid, block, shared_bytes, kernel.allowed_shared_bytes, settings_.seed, parameters};
  if (const std::string why = why_not(program, launch); !why.empty()) {
    throw Error(why, "", ErrorKind::device);
  }
  return [this, &kernel, launch, parameters](const WorkTime& time) {
    Launch own = launch;
    own.parameters = parameters;
    ++kernel.launches;
    run_grid(*kernel.program, own, memory_, pool_);
    const LastingName name = lasting_name(kernel.program->name);
    const std::string wrong = memory_.note_touched(time, name);
    if (!wrong.empty()) fail(wrong);
  };
}

void EmulatedDevice::allow_shared_bytes(Kernel& kernel, size_t bytes) {
  if (bytes > limits().most_shared_bytes) {
    throw Error(
        cat(readable_name(kernel.text.name), ": ", bytes,
            " bytes of shared memory asked for, the device has ", limits().most_shared_bytes),
        "", ErrorKind::device);
  }
  const std::lock_guard lock(mutex_);
  kernel.allowed_shared_bytes = std::max(kernel.allowed_shared_bytes, bytes);
}

Limits EmulatedDevice::limits() const {
  return settings_.target == 90 ? Limits{9, 227 * 1024} : Limits{8, 99 * 1024};
}

void EmulatedDevice::give(const Work& work, int stream) {
  const std::lock_guard lock(mutex_);
  if (is_recording(stream)) {
    recording_->push_back(work);
    return;
  }
  if (!fault_.empty()) return;
  try {
    work(order_.begin_work(stream));
  } catch (const std::exception& error) {
    fault_ = error.what();
  }
}

void EmulatedDevice::begin_recording(int stream) {
  const std::lock_guard lock(mutex_);
  recorded_ = stream;
  recording_.emplace();
}

std::vector<EmulatedDevice::Work> EmulatedDevice::end_recording() {
  const std::lock_guard lock(mutex_);
  std::vector<Work> work = recording_.value_or(std::vector<Work>{});
  recording_.reset();
  return work;
}

void EmulatedDevice::after_wait() {
  set_fault(host_copies_.arrive(order_.host()));
}

void EmulatedDevice::set_fault(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (fault_.empty()) fault_ = text;
}

}  // namespace fp8kv::ptx
