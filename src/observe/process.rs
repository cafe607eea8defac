//! What the operating system knows of this process. Linux only; elsewhere nothing is told.

use std::fs;

/// Clock ticks a second in `/proc`: fixed by the kernel's interface to user space.
const TICKS_PER_S: f64 = 100.0;

/// Processor seconds, resident bytes and start time in seconds since 1970, in the order of
/// [`crate::telemetry::PROCESS_METRICS`]; none for what cannot be read.
pub(super) fn usage() -> [Option<f64>; 3] {
    let stat = fs::read_to_string("/proc/self/stat").ok();
    let status = fs::read_to_string("/proc/self/status").ok();
    let system = fs::read_to_string("/proc/stat").ok();
    [
        stat.as_deref().and_then(cpu_seconds),
        status.as_deref().and_then(resident_bytes),
        stat.as_deref().zip(system.as_deref()).and_then(|(stat, system)| start_seconds(stat, system)),
    ]
}

/// Field `number` of `/proc/self/stat`, counted from 1 as in its manual. The second one, the name, may hold spaces and
/// brackets, so counting begins after the last bracket.
fn field(stat: &str, number: usize) -> Option<f64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_ascii_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
}

fn cpu_seconds(stat: &str) -> Option<f64> {
    Some((field(stat, 14)? + field(stat, 15)?) / TICKS_PER_S)
}

fn resident_bytes(status: &str) -> Option<f64> {
    let kib: f64 = after_name(status, "VmRSS:")?.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0)
}

fn start_seconds(stat: &str, system: &str) -> Option<f64> {
    let boot: f64 = after_name(system, "btime ")?.parse().ok()?;
    Some(boot + field(stat, 22)? / TICKS_PER_S)
}

fn after_name<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let stat = "42 (a) b (c)) S 1 42 42 0 -1 4194304 1 0 0 0 250 150 0 0 20 0 4 0 12345 1000 200 1844";
        assert_eq!(cpu_seconds(stat), Some(4.0));
        assert_eq!(start_seconds(stat, "cpu 1 2\nbtime 1000\n"), Some(1123.45));
        assert_eq!(resident_bytes("VmPeak:\t 9 kB\nVmRSS:\t    2048 kB\n"), Some(2_097_152.0));
        for text in ["", "42 (a", "42 (a) S 1", "VmRSS: many kB"] {
            assert_eq!((cpu_seconds(text), resident_bytes(text), start_seconds(text, text)), (None, None, None));
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_is_known() {
        let [cpu, memory, start] = usage();
        assert!(cpu.is_some() && memory.is_some_and(|bytes| bytes > 1e6) && start.is_some_and(|at| at > 1e9));
    }
}
