// Counts the threads worth having: the physical cores that this process may use.
#pragma once

#include <filesystem>
#include <vector>

namespace fp8kv {

// The number of physical cores among the logical processors `cpus`. Hyperthread siblings count
// once. `cpu_dir` is /sys/devices/system/cpu; if it has no topology, every processor counts as a
// core.
int count_cores(const std::vector<int>& cpus, const std::filesystem::path& cpu_dir);

// The CPU time that this process's control groups allow, in processors; infinite without a limit.
// `membership` is /proc/self/cgroup, and `root` is /sys/fs/cgroup. Supports versions 1 and 2.
double cgroup_cpus(const std::filesystem::path& membership, const std::filesystem::path& root);

// The number of cores that this process may use, at least 1.
int usable_cores();

}  // namespace fp8kv
