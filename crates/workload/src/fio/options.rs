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

pub(super) const USED: &str = "\
    allrandrepeat bs bsrange bssplit buffered description direct directory do_verify end_fsync fdatasync filename \
    filesize fsync group_reporting io_size iodepth ioengine kb_base loops name new_group norandommap number_ios \
    numjobs offset offset_increment percentage_random percentile_list ramp_time random_distribution randrepeat \
    randseed rate rate_iops runtime rw rwmixread rwmixwrite size startdelay stonewall sync thinktime thinktime_blocks \
    time_based verify";

/// Options of how fio itself works, checks, logs or prints, and of how engines hand requests over.
const IGNORED: &str = "\
    allow_file_create allow_mounted_write block_error_percentiles buffer_compress_chunk buffer_compress_percentage \
    buffer_pattern bwavgtime cgroup cgroup_nodelete cgroup_weight clat_percentiles clocksource cmdprio cmdprio_bssplit \
    cmdprio_class cmdprio_percentage continue_on_error cpumask cpus_allowed cpus_allowed_policy create_fsync \
    create_on_open create_serialize dedupe_global dedupe_mode dedupe_percentage dedupe_working_set_percentage \
    disable_bw_measurement disable_clat disable_lat disable_slat disk_util error_dump exec_postrun exec_prerun \
    exitall_on_error experimental_verify fadvise_hint fallocate file_service_type fixedbufs force_async gid gtod_cpu \
    gtod_reduce hipri hipri_percentage hostname hugepage_size ignore_error invalidate io_submit_mode iomem iomem_align \
    iopsavgtime ioscheduler job_start_clock_id lat_percentiles libaio_vectored lockmem log_alternate_epoch \
    log_alternate_epoch_clock_id log_avg_msec log_compression log_compression_cpus log_entries log_hist_coarseness \
    log_hist_msec log_issue_time log_max_value log_offset log_prio log_store_compressed log_unix_epoch \
    log_window_value nice nonvectored nowait numa_cpu_nodes numa_mem_policy openfiles overwrite per_job_logs \
    prio prioclass priohint random_generator refill_buffers registerfiles replay_align replay_no_stall \
    replay_redirect replay_scale replay_skip replay_time_scale scramble_buffers significant_figures slat_percentiles \
    softrandommap sqthread_poll sqthread_poll_cpu thinktime_spin thp thread trim_verify_zero uid uncached \
    unique_filename unit_base unlink unlink_each_loop userspace_reap verify_async verify_async_cpus verify_dump \
    verify_fatal verify_header_seed verify_interval verify_offset verify_pattern verify_pattern_interval \
    verify_state_load verify_state_save verify_write_sequence verifysort verifysort_nr write_bw_log write_hint \
    write_hist_log write_iops_log write_lat_log zero_buffers";

/// Options that change what is asked for or when, below the values at which they do not.
const NOT_BUILT: &[(&[&str], &str)] = &[
    (
        &["0"],
        "\
        atomic bs_is_seq_rand bs_unaligned create_only exitall fdp file_append fill_device flow flow_id \
        flow_sleep fsync_on_close ignore_zone_limits iodepth_low job_max_open_zones latency_run latency_target \
        latency_window max_latency max_open_zones offset_align pre_read rate_ignore_thinktime rate_iops_min \
        rate_min read_beyond_wp read_iolog_chunked readfua recover_zbd_write_error serialize_overlap sprandom \
        stream_id thinkcycles thinktime_iotime trim_backlog trim_backlog_batch trim_percentage verify_backlog \
        verify_backlog_batch verify_only write_barrier writefua zonecapacity zonerange zonesize zoneskip",
    ),
    (
        &[],
        "\
        ba comp_offset_align cpuchunks cpuload dp_scheme exit_what fdp_pli fdp_pli_select filename_format \
        flow_watermark merge_blktrace_file merge_blktrace_iters merge_blktrace_scalars opendir plids profile \
        rate_cycle read_iolog ss steadystate_check_interval steadystate_duration steadystate_ramp_time \
        sync_file_range wait_for write_iolog zone_reset_frequency zone_reset_threshold",
    ),
    (&["none"], "dataplacement lockfile zonemode"),
    (&["1"], "iodepth_batch iodepth_batch_complete_max iodepth_batch_complete_min nrfiles stats"),
    (&["100", "100.0"], "latency_percentile"),
    (&["0", "1"], "num_range"),
    (&["linear"], "rate_process"),
    (&["sequential"], "rw_sequencer"),
    (&["write"], "sg_write_mode"),
    (&["complete"], "thinktime_blocks_type"),
    (&["0", "none"], "unified_rw_reporting"),
];

/// All names used here, each with its class.
fn all() -> impl Iterator<Item = (&'static str, Class)> {
    let of = |names: &'static str, class| names.split_whitespace().map(move |name| (name, class));
    let not_built = NOT_BUILT.iter().flat_map(move |&(off, names)| of(names, Class::NotBuilt(off)));
    of(USED, Class::Used).chain(of(IGNORED, Class::Ignored)).chain(not_built)
}

/// The name used here and the class of the option `key`; `None` when fio has none of that name.
pub(super) fn find(key: &str) -> Option<(&'static str, Class)> {
    let key = ALIASES.iter().find(|a| a.0 == key).map_or(key, |a| a.1);
    all().find(|(name, _)| *name == key)
}

/// The known name nearest to `key`, when at most two letters differ.
pub(super) fn nearest(key: &str) -> Option<&'static str> {
    if key.len() > 40 {
        return None;
    }
    let names = ALIASES.iter().map(|a| a.0).chain(all().map(|(name, _)| name));
    names.map(|name| (levenshtein(key, name), name)).filter(|d| d.0 <= 2 && d.0 < key.len()).min().map(|d| d.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_listed_once_and_aliases_lead_somewhere() {
        let mut seen = BTreeSet::new();
        for (name, _) in all() {
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
