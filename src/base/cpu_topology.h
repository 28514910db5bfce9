// How many threads are worth having: the physical cores that this process may use.
#pragma once

#include <filesystem>
#include <vector>

namespace fp8kv {

// The physical cores among the logical processors `cpus`, counting hyperthread siblings once.
// `cpu_dir` is /sys/devices/system/cpu; where it says nothing, every processor is a core.
int count_cores(const std::vector<int>& cpus, const std::filesystem::path& cpu_dir);

// The CPU time that the control groups of this process allow, in processors; infinite where none
// is set. `membership` is /proc/self/cgroup, `root` is /sys/fs/cgroup. Knows versions 1 and 2.
double cgroup_cpus(const std::filesystem::path& membership, const std::filesystem::path& root);

// At least 1.
int usable_cores();

}  // namespace fp8kv
