// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of fio's options and what becomes of each here (fio HOWTO, "Job Parameters" and "I/O engine"). Knows no
//! values but those that switch an option off.

use strsim::levenshtein;

/// What becomes of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    /// `job` reads its value.
    Used,
    /// Has no meaning in virtual time.
    Ignored,
    /// Would change the result and is not built, unless it has one of these values.
    NotBuilt(&'static [&'static str]),
}

/// Other names of an option and the name used here.
const ALIASES: &[(&str, &str)] = &[
    ("readwrite", "rw"),
    ("blocksize", "bs"),
    ("blocksize_range", "bsrange"),
    ("blocksize_unaligned", "bs_unaligned"),
    ("blockalign", "ba"),
    ("io_limit", "io_size"),
    ("timeout", "runtime"),
    ("wait_for_previous", "stonewall"),
    ("fill_fs", "fill_device"),
    ("mem", "iomem"),
    ("mem_align", "iomem_align"),
    ("hugepage-size", "hugepage_size"),
    ("steadystate", "ss"),
    ("ss_dur", "steadystate_duration"),
    ("ss_ramp", "steadystate_ramp_time"),
    ("iodepth_batch_submit", "iodepth_batch"),
    ("iodepth_batch_complete", "iodepth_batch_complete_min"),
    ("ratemin", "rate_min"),
    ("ratecycle", "rate_cycle"),
];

pub(super) const USED: &[&str] = &[
    "allrandrepeat",
    "bs",
    "bsrange",
    "bssplit",
    "buffered",
    "description",
    "direct",
    "directory",
    "do_verify",
    "end_fsync",
    "fdatasync",
    "filename",
    "filesize",
    "fsync",
    "group_reporting",
    "io_size",
    "iodepth",
    "ioengine",
    "kb_base",
    "loops",
    "name",
    "new_group",
    "norandommap",
    "number_ios",
    "numjobs",
    "offset",
    "offset_increment",
    "percentage_random",
    "ramp_time",
    "random_distribution",
    "randrepeat",
    "randseed",
    "rate",
    "rate_iops",
    "runtime",
    "rw",
    "rwmixread",
    "rwmixwrite",
    "size",
    "startdelay",
    "stonewall",
    "sync",
    "thinktime",
    "thinktime_blocks",
    "time_based",
    "verify",
];

/// Options of how fio itself works, checks, logs or prints; and of engines that only change how requests are handed
/// over.
const IGNORED: &[&str] = &[
    "allow_file_create",
    "allow_mounted_write",
    "block_error_percentiles",
    "buffer_compress_chunk",
    "buffer_compress_percentage",
    "buffer_pattern",
    "bwavgtime",
    "cgroup",
    "cgroup_nodelete",
    "cgroup_weight",
    "clat_percentiles",
    "clocksource",
    "cmdprio",
    "cmdprio_bssplit",
    "cmdprio_class",
    "cmdprio_percentage",
    "continue_on_error",
    "cpumask",
    "cpus_allowed",
    "cpus_allowed_policy",
    "create_fsync",
    "create_on_open",
    "create_serialize",
    "dedupe_global",
    "dedupe_mode",
    "dedupe_percentage",
    "dedupe_working_set_percentage",
    "disable_bw_measurement",
    "disable_clat",
    "disable_lat",
    "disable_slat",
    "disk_util",
    "error_dump",
    "exec_postrun",
    "exec_prerun",
    "exitall_on_error",
    "experimental_verify",
    "fadvise_hint",
    "fallocate",
    "file_service_type",
    "fixedbufs",
    "force_async",
    "gid",
    "gtod_cpu",
    "gtod_reduce",
    "hipri",
    "hipri_percentage",
    "hostname",
    "hugepage_size",
    "ignore_error",
    "invalidate",
    "io_submit_mode",
    "iomem",
    "iomem_align",
    "iopsavgtime",
    "ioscheduler",
    "job_start_clock_id",
    "lat_percentiles",
    "libaio_vectored",
    "lockmem",
    "log_alternate_epoch",
    "log_alternate_epoch_clock_id",
    "log_avg_msec",
    "log_compression",
    "log_compression_cpus",
    "log_entries",
    "log_hist_coarseness",
    "log_hist_msec",
    "log_issue_time",
    "log_max_value",
    "log_offset",
    "log_prio",
    "log_store_compressed",
    "log_unix_epoch",
    "log_window_value",
    "nice",
    "nonvectored",
    "nowait",
    "numa_cpu_nodes",
    "numa_mem_policy",
    "openfiles",
    "overwrite",
    "per_job_logs",
    "percentile_list",
    "prio",
    "prioclass",
    "priohint",
    "random_generator",
    "refill_buffers",
    "registerfiles",
    "replay_align",
    "replay_no_stall",
    "replay_redirect",
    "replay_scale",
    "replay_skip",
    "replay_time_scale",
    "scramble_buffers",
    "significant_figures",
    "slat_percentiles",
    "softrandommap",
    "sqthread_poll",
    "sqthread_poll_cpu",
    "thinktime_spin",
    "thp",
    "thread",
    "trim_verify_zero",
    "uid",
    "uncached",
    "unique_filename",
    "unit_base",
    "unlink",
    "unlink_each_loop",
    "userspace_reap",
    "verify_async",
    "verify_async_cpus",
    "verify_dump",
    "verify_fatal",
    "verify_header_seed",
    "verify_interval",
    "verify_offset",
    "verify_pattern",
    "verify_pattern_interval",
    "verify_state_load",
    "verify_state_save",
    "verify_write_sequence",
    "verifysort",
    "verifysort_nr",
    "write_bw_log",
    "write_hint",
    "write_hist_log",
    "write_iops_log",
    "write_lat_log",
    "zero_buffers",
];

const OFF: &[&str] = &["0"];
const ONE: &[&str] = &["1"];

/// Options that change what is asked for or when, with the values at which they do not.
const NOT_BUILT: &[(&str, &[&str])] = &[
    ("atomic", OFF),
    ("ba", &[]),
    ("bs_is_seq_rand", OFF),
    ("bs_unaligned", OFF),
    ("comp_offset_align", &[]),
    ("cpuchunks", &[]),
    ("cpuload", &[]),
    ("create_only", OFF),
    ("dataplacement", &["none"]),
    ("dp_scheme", &[]),
    ("exit_what", &[]),
    ("exitall", OFF),
    ("fdp", OFF),
    ("fdp_pli", &[]),
    ("fdp_pli_select", &[]),
    ("file_append", OFF),
    ("filename_format", &[]),
    ("fill_device", OFF),
    ("flow", OFF),
    ("flow_id", OFF),
    ("flow_sleep", OFF),
    ("flow_watermark", &[]),
    ("fsync_on_close", OFF),
    ("ignore_zone_limits", OFF),
    ("iodepth_batch", ONE),
    ("iodepth_batch_complete_max", ONE),
    ("iodepth_batch_complete_min", ONE),
    ("iodepth_low", OFF),
    ("job_max_open_zones", OFF),
    ("latency_percentile", &["100", "100.0"]),
    ("latency_run", OFF),
    ("latency_target", OFF),
    ("latency_window", OFF),
    ("lockfile", &["none"]),
    ("max_latency", OFF),
    ("max_open_zones", OFF),
    ("merge_blktrace_file", &[]),
    ("merge_blktrace_iters", &[]),
    ("merge_blktrace_scalars", &[]),
    ("nrfiles", ONE),
    ("num_range", &["0", "1"]),
    ("offset_align", OFF),
    ("opendir", &[]),
    ("plids", &[]),
    ("pre_read", OFF),
    ("profile", &[]),
    ("rate_cycle", &[]),
    ("rate_ignore_thinktime", OFF),
    ("rate_iops_min", OFF),
    ("rate_min", OFF),
    ("rate_process", &["linear"]),
    ("read_beyond_wp", OFF),
    ("read_iolog", &[]),
    ("read_iolog_chunked", OFF),
    ("readfua", OFF),
    ("recover_zbd_write_error", OFF),
    ("rw_sequencer", &["sequential"]),
    ("serialize_overlap", OFF),
    ("sg_write_mode", &["write"]),
    ("sprandom", OFF),
    ("ss", &[]),
    ("stats", ONE),
    ("steadystate_check_interval", &[]),
    ("steadystate_duration", &[]),
    ("steadystate_ramp_time", &[]),
    ("stream_id", OFF),
    ("sync_file_range", &[]),
    ("thinkcycles", OFF),
    ("thinktime_blocks_type", &["complete"]),
    ("thinktime_iotime", OFF),
    ("trim_backlog", OFF),
    ("trim_backlog_batch", OFF),
    ("trim_percentage", OFF),
    ("unified_rw_reporting", &["0", "none"]),
    ("verify_backlog", OFF),
    ("verify_backlog_batch", OFF),
    ("verify_only", OFF),
    ("wait_for", &[]),
    ("write_barrier", OFF),
    ("write_iolog", &[]),
    ("writefua", OFF),
    ("zone_reset_frequency", &[]),
    ("zone_reset_threshold", &[]),
    ("zonecapacity", OFF),
    ("zonemode", &["none"]),
    ("zonerange", OFF),
    ("zonesize", OFF),
    ("zoneskip", OFF),
];

/// The name used here and the class of the option `key`; `None` when fio has none of that name.
pub(super) fn find(key: &str) -> Option<(&'static str, Class)> {
    let key = ALIASES.iter().find(|a| a.0 == key).map_or(key, |a| a.1);
    let listed = |list: &'static [&'static str]| list.iter().find(|name| **name == key).copied();
    if let Some(name) = listed(USED) {
        return Some((name, Class::Used));
    }
    if let Some(name) = listed(IGNORED) {
        return Some((name, Class::Ignored));
    }
    NOT_BUILT.iter().find(|n| n.0 == key).map(|n| (n.0, Class::NotBuilt(n.1)))
}

/// The known name nearest to `key`, when at most two letters differ.
pub(super) fn nearest(key: &str) -> Option<&'static str> {
    if key.len() > 40 {
        return None;
    }
    let names = ALIASES.iter().map(|a| a.0).chain(USED.iter().copied()).chain(IGNORED.iter().copied());
    let names = names.chain(NOT_BUILT.iter().map(|n| n.0));
    names.map(|name| (levenshtein(key, name), name)).filter(|d| d.0 <= 2 && d.0 < key.len()).min().map(|d| d.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_listed_once_and_aliases_lead_somewhere() {
        let mut seen = BTreeSet::new();
        let not_built = NOT_BUILT.iter().map(|n| n.0);
        for name in USED.iter().copied().chain(IGNORED.iter().copied()).chain(not_built) {
            assert!(seen.insert(name), "{name}");
        }
        assert!(ALIASES.iter().all(|a| seen.contains(a.1)));
    }

    #[test]
    fn nearest_name() {
        assert_eq!(nearest("iodpeth"), Some("iodepth"));
        assert_eq!(nearest("rwmixraed"), Some("rwmixread"));
        assert_eq!(nearest("colour"), None);
        assert_eq!(find("blocksize"), Some(("bs", Class::Used)));
        assert_eq!(find("nope"), None);
    }
}
