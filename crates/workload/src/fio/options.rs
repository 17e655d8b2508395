// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of fio's options: every name, category, kind of value, and what the option means for a result (fio HOWTO,
//! `fio --cmdhelp=all`, `fio --enghelp`). Parsing, errors, suggestions and the reference page follow from it.

use std::fmt::Write;
use std::sync::Arc;

use readpath_kit::Ns;
use strsim::levenshtein;

use super::lexer::{At, Opt};
use super::notes::Notes;
use super::settings::{Set, Settings, check_name, path};
use super::value::{self, Amount, Unit};
use super::{JobError, lists};
use crate::{Latencies, Sizes};

/// The section of fio's documentation that has an option.
const GENERAL: &str = "general";
const FILE: &str = "files";
const IO: &str = "I/O";
const LOG: &str = "logs";
const STATISTICS: &str = "statistics";
const ENGINE: &str = "engine";
/// A job that fails it ends in fio.
const CHECK: &str = "checks";
const PROFILE: &str = "profile";

/// What the value of an option is.
const SWITCH: &str = "0 or 1";
const NUMBER: &str = "number";
const SIZE: &str = "bytes";
const PERCENT: &str = "percent";
const TIME: &str = "time";
const WORDS: &str = "words";
const TEXT: &str = "text";
const NUMBERS: &str = "numbers";
const PER_KIND: &str = "for each of read, write and trim";

/// A value's place, and the context for reading it.
pub(super) struct Given<'a> {
    key: &'static str,
    at: &'a At,
    /// Bytes of 1k.
    kb: u64,
    notes: &'a mut Notes,
}

impl Given<'_> {
    fn set<T>(&self, value: T) -> Set<T> {
        Set { value, at: self.at.clone(), key: self.key }
    }
}

type Res = Result<(), String>;

/// How the value of a simulated option is read, and what it sets.
pub(super) enum Reads {
    Switch(fn(&mut Settings, bool, &mut Given)),
    /// A whole number between two bounds.
    Number(u64, u64, fn(&mut Settings, u64, &mut Given)),
    /// A size, or a share in percent; zero only where the first field says so.
    Amount(bool, fn(&mut Settings, Set<Amount>)),
    /// A time; a number without suffix counts the unit.
    Time(Unit, fn(&mut Settings, Ns)),
    /// A value with a form of its own.
    Other(&'static str, fn(&mut Settings, &Arc<str>, &mut Given) -> Res),
}

/// What an option means for a result.
pub(super) enum Meaning {
    Simulated(Reads),
    /// It says how fio itself works, checks, logs or prints, or how an engine hands requests over.
    NoEffect(&'static str),
    /// The option would change requests or their times, except with these values.
    NotModelled(&'static str, &'static [&'static str]),
}

/// Options of one category and meaning.
struct Row {
    category: &'static str,
    meaning: Meaning,
    /// Separated by spaces; aliases of one option by `=`, fio's first name first.
    names: &'static str,
}

const fn switch(category: &'static str, names: &'static str, set: fn(&mut Settings, bool, &mut Given)) -> Row {
    Row { category, names, meaning: Meaning::Simulated(Reads::Switch(set)) }
}

const fn number(
    category: &'static str,
    names: &'static str,
    (min, max): (u64, u64),
    set: fn(&mut Settings, u64, &mut Given),
) -> Row {
    Row { category, names, meaning: Meaning::Simulated(Reads::Number(min, max, set)) }
}

const fn amount(names: &'static str, zero: bool, set: fn(&mut Settings, Set<Amount>)) -> Row {
    Row { category: IO, names, meaning: Meaning::Simulated(Reads::Amount(zero, set)) }
}

const fn time(category: &'static str, names: &'static str, unit: Unit, set: fn(&mut Settings, Ns)) -> Row {
    Row { category, names, meaning: Meaning::Simulated(Reads::Time(unit, set)) }
}

const fn other(
    category: &'static str,
    names: &'static str,
    kind: &'static str,
    set: fn(&mut Settings, &Arc<str>, &mut Given) -> Res,
) -> Row {
    Row { category, names, meaning: Meaning::Simulated(Reads::Other(kind, set)) }
}

const fn no_effect(category: &'static str, kind: &'static str, names: &'static str) -> Row {
    Row { category, names, meaning: Meaning::NoEffect(kind) }
}

const fn not_modelled(
    category: &'static str,
    kind: &'static str,
    off: &'static [&'static str],
    names: &'static str,
) -> Row {
    Row { category, names, meaning: Meaning::NotModelled(kind, off) }
}

const ANY: u64 = u64::MAX;
const U32: u64 = u32::MAX as u64;
/// Most jobs of a section and requests in flight, as in fio.
const MANY: (u64, u64) = (1, 65_535);
const OFF: &[&str] = &["0"];

static TABLE: &[Row] = &[
    other(GENERAL, "name", TEXT, |s, text, _| {
        s.name = Some(check_name(text)?);
        Ok(())
    }),
    other(GENERAL, "description", TEXT, |s, text, _| {
        s.description = Some(text.clone());
        Ok(())
    }),
    number(GENERAL, "numjobs", MANY, |s, n, _| s.numjobs = n as u32),
    number(GENERAL, "loops", (1, ANY), |s, n, g| s.loops = g.set(n)),
    time(GENERAL, "runtime=timeout", Unit::Second, |s, t| s.runtime = (t > Ns::ZERO).then_some(t)),
    switch(GENERAL, "time_based", |s, on, g| s.time_based = Some(g.set(on))),
    time(GENERAL, "ramp_time", Unit::Second, |s, t| s.ramp = t),
    other(GENERAL, "startdelay", TIME, |s, text, _| {
        if text.contains('-') {
            return Err("a delay drawn from a range is not supported; give one time".into());
        }
        s.start_delay = value::time(text, Unit::Second)?;
        Ok(())
    }),
    switch(GENERAL, "stonewall=wait_for_previous", |s, on, _| s.stonewall = on),
    other(GENERAL, "wait_for", TEXT, |s, text, g| {
        s.wait_for = Some(g.set(text.clone()));
        Ok(())
    }),
    switch(GENERAL, "exitall", |s, on, _| s.exitall = on),
    other(GENERAL, "exit_what", WORDS, |s, text, _| {
        s.exit_what = lists::ends(text)?;
        Ok(())
    }),
    switch(GENERAL, "new_group", |s, on, _| s.new_group = on),
    other(GENERAL, "kb_base", WORDS, |s, text, _| match &**text {
        "1000" => {
            s.kb_base = 1000;
            Ok(())
        }
        "1024" => {
            s.kb_base = 1024;
            Ok(())
        }
        _ => Err("must be 1000 or 1024".into()),
    }),
    switch(STATISTICS, "group_reporting", |s, on, _| s.group_reporting = on),
    other(STATISTICS, "percentile_list", NUMBERS, |s, text, _| {
        s.percentiles = lists::percentiles(text)?.into();
        Ok(())
    }),
    other(FILE, "filename", TEXT, |s, text, g| {
        let several = "several files per job (a list with colons) are not supported; write one job per file, or \\: \
                       for a colon within a name";
        let name = path(text, several)?;
        s.filename = Some(g.set(name));
        Ok(())
    }),
    other(FILE, "directory", TEXT, |s, text, _| {
        s.directory = Some(path(text, "several directories are not supported; give one")?);
        Ok(())
    }),
    other(FILE, "filename_format", TEXT, |s, text, _| {
        s.filename_format = Some(path(text, "a file name must not have a colon")?);
        Ok(())
    }),
    other(FILE, "filesize", SIZE, |s, text, g| {
        if text.contains('-') {
            return Err("file sizes drawn from a range are not supported; give one size".into());
        }
        match value::bytes(text, g.kb)? {
            0 => Err("must not be zero".into()),
            bytes => {
                s.filesize = Some(g.set(bytes));
                Ok(())
            }
        }
    }),
    number(FILE, "fsync", (0, U32), |s, n, _| s.flush_every[0] = n as u32),
    number(FILE, "fdatasync", (0, U32), |s, n, _| s.flush_every[1] = n as u32),
    switch(FILE, "end_fsync", |s, on, _| s.end_flush = on),
    switch(FILE, "fill_device=fill_fs", |s, on, _| s.fill = on),
    other(IO, "rw=readwrite", WORDS, |s, text, g| {
        s.pattern = lists::pattern(text, g.kb)?;
        Ok(())
    }),
    other(IO, "ioengine", WORDS, |s, text, _| {
        s.engine = Some(lists::engine(text)?);
        Ok(())
    }),
    number(IO, "iodepth", MANY, |s, n, g| s.iodepth = g.set(n as u32)),
    amount("size", false, |s, amount| s.size = Some(amount)),
    amount("io_size=io_limit", false, |s, amount| s.io_size = Some(amount)),
    amount("offset=fileoffset", true, |s, amount| s.offset = Some(amount)),
    amount("offset_increment", true, |s, amount| s.offset_increment = Some(amount)),
    number(IO, "number_ios", (0, ANY), |s, n, g| s.number_ios = (n > 0).then(|| g.set(n))),
    other(IO, "bs=blocksize", PER_KIND, |s, text, g| {
        value::per_kind(text, &mut s.sizes, |t| value::block_size(t, g.kb).map(|n| Some(Sizes::Fixed(n))))
    }),
    other(IO, "bsrange=blocksize_range", PER_KIND, |s, text, g| {
        value::per_kind(text, &mut s.sizes, |t| lists::size_range(t, g.kb).map(Some))
    }),
    other(IO, "bssplit", PER_KIND, |s, text, g| {
        value::per_kind(text, &mut s.split, |t| lists::size_split(t, g.kb).map(Some))
    }),
    other(IO, "ba=blockalign", PER_KIND, |s, text, g| {
        let mut align = s.align.take().map_or([None; 3], |align| align.value);
        value::per_kind(text, &mut align, |t| value::bytes(t, g.kb).map(Some))?;
        s.align = Some(g.set(align));
        Ok(())
    }),
    switch(IO, "randrepeat", not_repeated),
    switch(IO, "allrandrepeat", not_repeated),
    number(IO, "randseed", (0, ANY), |s, n, _| s.randseed = Some(n)),
    switch(IO, "norandommap", |s, on, _| s.norandommap = on),
    other(IO, "random_distribution", WORDS, |s, text, _| lists::distribution(text, &mut s.distribution)),
    other(IO, "percentage_random", PER_KIND, |s, text, _| {
        value::per_kind(text, &mut s.random_percent, |t| value::count(t, 0, 100).map(|p| p as u8))
    }),
    switch(IO, "direct", |s, on, _| s.direct = on),
    switch(IO, "buffered", |s, on, _| s.direct = !on),
    other(IO, "sync", WORDS, |s, text, _| match &**text {
        "0" | "none" => {
            s.fua = false;
            Ok(())
        }
        "1" | "sync" | "dsync" => {
            s.fua = true;
            Ok(())
        }
        _ => Err("must be none, sync or dsync".into()),
    }),
    other(IO, "verify", WORDS, |s, text, g| {
        s.verify = (**text != *"0").then(|| g.set(()));
        Ok(())
    }),
    switch(IO, "do_verify", |s, on, _| s.do_verify = on),
    number(IO, "verify_backlog", (0, U32), |s, n, _| s.verify_backlog = n),
    other(IO, "zonemode", WORDS, |s, text, g| {
        if !matches!(&**text, "none" | "strided" | "zbd") {
            return Err(format!("\"{text}\" must be none, strided or zbd"));
        }
        s.strided = &**text == "strided";
        s.zbd.on = (&**text == "zbd").then(|| g.set(()));
        Ok(())
    }),
    other(IO, "zonesize", SIZE, |s, text, g| zone(s, 0, text, g)),
    other(IO, "zonerange", SIZE, |s, text, g| zone(s, 1, text, g)),
    other(IO, "zoneskip", SIZE, |s, text, g| zone(s, 2, text, g)),
    number(IO, "max_open_zones", (0, U32), |s, n, g| s.zbd.most_open = (n > 0).then(|| g.set(n as u32))),
    number(IO, "job_max_open_zones", (0, U32), |s, n, g| s.zbd.job_most_open = (n > 0).then(|| g.set(n as u32))),
    other(IO, "zone_reset_threshold", NUMBERS, |s, text, g| {
        s.zbd.threshold = Some(g.set(share(text)?));
        Ok(())
    }),
    other(IO, "zone_reset_frequency", NUMBERS, |s, text, g| {
        s.zbd.frequency = Some(g.set(share(text)?)).filter(|share| share.value > 0.0);
        Ok(())
    }),
    switch(IO, "read_beyond_wp", |s, on, g| s.zbd.read_beyond_wp = on.then(|| g.set(()))),
    other(IO, "rate_process", WORDS, |s, text, _| {
        s.poisson = match &**text {
            "linear" => false,
            "poisson" => true,
            _ => return Err(format!("\"{text}\" must be linear or poisson")),
        };
        Ok(())
    }),
    number(IO, "rwmixread", (0, 100), |s, n, g| mix(s, 0, n as u8, g)),
    number(IO, "rwmixwrite", (0, 100), |s, n, g| mix(s, 1, n as u8, g)),
    time(IO, "thinktime", Unit::Microsecond, |s, t| s.think_time = t),
    number(IO, "thinktime_blocks", (1, U32), |s, n, _| s.think_every = n as u32),
    other(IO, "rate", PER_KIND, |s, text, g| {
        s.rate_at = Some(g.set(()));
        value::per_kind(text, &mut s.rate, |t| value::bytes(t, g.kb))
    }),
    other(IO, "rate_iops", PER_KIND, |s, text, g| {
        s.rate_at = Some(g.set(()));
        value::per_kind(text, &mut s.rate_iops, |t| value::bytes(t, g.kb))
    }),
    number(IO, "flow", (0, 1000), |s, n, _| s.flow = n as u32),
    number(IO, "flow_id", (0, U32), |s, n, _| s.flow_id = n as u32),
    number(IO, "flow_sleep", (0, U32), |s, n, _| s.flow_sleep = Ns::from_us(n)),
    no_effect(
        GENERAL,
        NUMBER,
        "cgroup_weight cpumask gid gpu_dev_id gtod_cpu job_start_clock_id nice prio prioclass priohint uid",
    ),
    no_effect(GENERAL, SWITCH, "cgroup_nodelete error_dump exitall_on_error thread"),
    no_effect(GENERAL, SIZE, "hugepage-size lockmem"),
    no_effect(
        GENERAL,
        WORDS,
        "clocksource continue_on_error cpus_allowed cpus_allowed_policy ignore_error numa_cpu_nodes numa_mem_policy \
         unit_base",
    ),
    no_effect(GENERAL, TEXT, "cgroup comm exec_postrun exec_prerun"),
    no_effect(
        FILE,
        SWITCH,
        "allow_file_create allow_mounted_write create_fsync create_on_open create_serialize overwrite \
         unique_filename unlink unlink_each_loop",
    ),
    no_effect(FILE, NUMBER, "openfiles"),
    no_effect(FILE, WORDS, "fadvise_hint fallocate file_service_type filetype ioscheduler"),
    no_effect(
        IO,
        SWITCH,
        "dedupe_global experimental_verify invalidate refill_buffers replay_no_stall scramble_buffers softrandommap \
         trim_verify_zero verify_dump verify_fatal verify_header_seed verify_state_load verify_state_save \
         verify_write_sequence verifysort zero_buffers",
    ),
    no_effect(IO, NUMBER, "replay_scale replay_time_scale rwmixcycle verify_async verifysort_nr"),
    no_effect(
        IO,
        PERCENT,
        "buffer_compress_percentage dedupe_percentage dedupe_working_set_percentage percentage_sequential",
    ),
    no_effect(
        IO,
        SIZE,
        "buffer_compress_chunk iomem_align=mem_align replay_align verify_interval verify_offset \
         verify_pattern_interval",
    ),
    no_effect(IO, TIME, "thinktime_spin"),
    no_effect(
        IO,
        WORDS,
        "dedupe_mode io_submit_mode mem=iomem random_generator replay_skip verify_async_cpus verify_policy",
    ),
    no_effect(IO, TEXT, "buffer_pattern replay_redirect verify_pattern"),
    no_effect(
        LOG,
        SWITCH,
        "block_error_percentiles log_alternate_epoch log_issue_time log_max_value log_offset log_prio \
         log_store_compressed log_unix_epoch log_window_value per_job_logs",
    ),
    no_effect(LOG, NUMBER, "log_alternate_epoch_clock_id log_entries log_hist_coarseness"),
    no_effect(LOG, TIME, "bwavgtime iopsavgtime log_avg_msec log_hist_msec"),
    no_effect(LOG, SIZE, "log_compression"),
    no_effect(LOG, TEXT, "log_compression_cpus write_bw_log write_hist_log write_iops_log write_lat_log"),
    switch(STATISTICS, "clat_percentiles", |s, on, _| s.latencies.clat_percentiles = on),
    switch(STATISTICS, "lat_percentiles", |s, on, _| s.latencies.lat_percentiles = on),
    switch(STATISTICS, "disable_clat", |s, on, _| s.latencies.clat = !on),
    switch(STATISTICS, "disable_lat", |s, on, _| s.latencies.lat = !on),
    switch(STATISTICS, "gtod_reduce", |s, on, _| {
        // As in fio, 0 does not bring back what another option left out.
        if on {
            s.latencies = Latencies { clat: false, lat: false, clat_percentiles: false, lat_percentiles: false };
        }
    }),
    no_effect(STATISTICS, SWITCH, "disable_bw_measurement=disable_bw disable_slat disk_util slat_percentiles"),
    no_effect(CHECK, SIZE, "rate_min=ratemin"),
    no_effect(CHECK, NUMBER, "rate_iops_min rate_cycle=ratecycle"),
    no_effect(CHECK, TIME, "max_latency"),
    // fio takes the options of its two profiles in any job.
    no_effect(
        PROFILE,
        NUMBER,
        "block large-block-op-kbytes load numruns prep read-req-num-512-blocks threads \
         threads-per-queue",
    ),
    no_effect(PROFILE, TEXT, "device-names dir"),
    no_effect(PROFILE, TIME, "test-duration"),
    no_effect(STATISTICS, NUMBER, "significant_figures"),
    no_effect(
        ENGINE,
        SWITCH,
        "fixedbufs hipri libaio_vectored libblkio_force_enable_completion_eventfd libblkio_vectored \
         no_completion_thread nonvectored nowait registerfiles sqthread_poll thp uncached userspace_reap \
         verify_bytchk xnvme_iovec",
    ),
    no_effect(
        ENGINE,
        NUMBER,
        "apptag apptag_mask cdb_len cmdprio cmdprio_class force_async libblkio_num_entries libblkio_queue_size \
         sqthread_poll_cpu xnvme_dev_nsid",
    ),
    no_effect(ENGINE, PERCENT, "cmdprio_percentage hipri_percentage"),
    no_effect(
        ENGINE,
        WORDS,
        "cmd_type cmdprio_bssplit libblkio_driver libblkio_wait_mode pi_chk write_hint xnvme_admin xnvme_async \
         xnvme_be xnvme_mem xnvme_sync",
    ),
    no_effect(ENGINE, TEXT, "libblkio_path libblkio_pre_connect_props libblkio_pre_start_props xnvme_dev_subnqn"),
    not_modelled(GENERAL, SWITCH, OFF, "latency_run verify_only"),
    not_modelled(GENERAL, WORDS, &[], "profile steadystate=ss"),
    not_modelled(GENERAL, WORDS, &["0", "none"], "unified_rw_reporting"),
    not_modelled(
        GENERAL,
        TIME,
        &[],
        "steadystate_check_interval=ss_interval steadystate_duration=ss_dur steadystate_ramp_time=ss_ramp",
    ),
    not_modelled(GENERAL, SIZE, OFF, "ramp_size"),
    not_modelled(FILE, SWITCH, OFF, "create_only end_syncfs file_append fsync_on_close pre_read"),
    not_modelled(FILE, NUMBER, &["1"], "nrfiles=nr_files"),
    not_modelled(FILE, WORDS, &["none"], "lockfile"),
    not_modelled(FILE, TEXT, &[], "opendir sync_file_range"),
    not_modelled(
        IO,
        SWITCH,
        OFF,
        "atomic bs_is_seq_rand bs_unaligned=blocksize_unaligned fdp ignore_zone_limits random_sequence_stride \
         rate_ignore_thinktime read_iolog_chunked recover_zbd_write_error serialize_overlap sprandom \
         write_zone_remainder",
    ),
    not_modelled(
        IO,
        NUMBER,
        OFF,
        "iodepth_low thinkcycles trim_backlog trim_backlog_batch verify_backlog_batch write_barrier",
    ),
    not_modelled(IO, NUMBER, &[], "flow_watermark spr_num_regions"),
    not_modelled(
        IO,
        NUMBER,
        &["1"],
        "iodepth_batch=iodepth_batch_submit iodepth_batch_complete_min=iodepth_batch_complete \
         iodepth_batch_complete_max",
    ),
    not_modelled(IO, NUMBER, &["0", "1"], "num_range"),
    not_modelled(IO, PERCENT, OFF, "trim_percentage"),
    not_modelled(IO, PERCENT, &["100", "100.0"], "latency_percentile"),
    not_modelled(IO, SIZE, OFF, "offset_align zonecapacity"),
    not_modelled(IO, SIZE, &[], "spr_cs"),
    not_modelled(IO, TIME, OFF, "latency_target latency_window thinktime_iotime"),
    not_modelled(IO, WORDS, &["none"], "dataplacement=data_placement"),
    not_modelled(IO, WORDS, &["sequential"], "rw_sequencer"),
    not_modelled(IO, WORDS, &["complete"], "thinktime_blocks_type"),
    not_modelled(IO, WORDS, &[], "plid_select=fdp_pli_select"),
    not_modelled(IO, TEXT, &[], "dp_scheme merge_blktrace_file read_iolog write_iolog"),
    not_modelled(IO, NUMBERS, &[], "merge_blktrace_iters merge_blktrace_scalars plids=fdp_pli spr_op"),
    not_modelled(STATISTICS, SWITCH, &["1"], "stats"),
    not_modelled(
        ENGINE,
        SWITCH,
        OFF,
        "deac libblkio_write_zeroes_on_trim pi_act readfua skip_bad touch_objects writefua",
    ),
    not_modelled(ENGINE, NUMBER, OFF, "md_per_io_size stream_id"),
    not_modelled(ENGINE, WORDS, &["write"], "sg_write_mode write_mode"),
    not_modelled(ENGINE, WORDS, &["read"], "read_mode verify_mode"),
    // Engines that do not read and write a block device.
    not_modelled(
        ENGINE,
        TEXT,
        &[],
        "arguments bindname brick busy_poll chunk_size=chunck_size clientname clustername conf cont cpuchunks cpuload \
         cpumode cuda_io donorname exit_on_io_done gpu_dev_ids grace_time hdfs_use_direct hdfsdirectory hostname \
         http_host http_mode http_object_mode http_pass http_s3_key http_s3_keyid http_s3_region \
         http_s3_security_token http_s3_sse_customer_algorithm http_s3_sse_customer_key http_s3_storage_class \
         http_swift_auth_token http_user http_verbose https initiator inplace interface listen mss namenode nfs_url \
         nodelay object_class pingpong pool port program protocol=proto rbd_encryption_format \
         rbd_encryption_passphrase rbdname rocm_io single-instance single_instance stat_type std_redirect svcl ttl \
         uri verb volume window_size",
    ),
];

fn not_repeated(_: &mut Settings, repeat: bool, given: &mut Given) {
    if !repeat {
        let key = given.key;
        given.notes.add("randrepeat", given.at, || {
            format!("{key}=0: the same seed gives the same requests here all the same")
        });
    }
}

/// A number between zero and one.
fn share(text: &str) -> Result<f64, String> {
    let share = value::float(text)?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(format!("\"{text}\" must lie between 0 and 1")) }
}

/// Sets one of the lengths of zones.
fn zone(s: &mut Settings, which: usize, text: &str, given: &mut Given) -> Res {
    let bytes = value::bytes(text, given.kb)?;
    s.zone[which] = (bytes > 0).then(|| given.set(bytes));
    Ok(())
}

/// Sets the share of reads (0) or writes (1) of a mix.
fn mix(s: &mut Settings, of: usize, percent: u8, given: &mut Given) {
    s.mix_set[of] = Some(percent);
    if let [Some(r), Some(w)] = s.mix_set
        && r + w != 100
    {
        given.notes.add("mix", given.at, || {
            format!("rwmixread {r} and rwmixwrite {w} do not sum to 100; the later one counts, as in fio")
        });
    }
    s.mix_read = if of == 1 { 100 - percent } else { percent };
}

impl Reads {
    /// Sets what the option says.
    fn apply(&self, settings: &mut Settings, value: Option<&Arc<str>>, given: &mut Given) -> Res {
        let text = || value.filter(|v| !v.is_empty()).ok_or("a value is missing");
        match self {
            Reads::Switch(set) => set(settings, value::switch(value.map(|v| &**v))?, given),
            Reads::Number(min, max, set) => set(settings, value::count(text()?, *min, *max)?, given),
            Reads::Amount(zero, set) => match value::amount(text()?, given.kb)? {
                Amount::Bytes(0) | Amount::Percent(0) if !zero => return Err("must not be zero".into()),
                amount => set(settings, given.set(amount)),
            },
            Reads::Time(unit, set) => set(settings, value::time(text()?, *unit)?),
            Reads::Other(_, set) => set(settings, text()?, given)?,
        }
        Ok(())
    }
}

/// Every option: its row and its names, separated by `=`.
fn all() -> impl Iterator<Item = (&'static Row, &'static str)> {
    TABLE.iter().flat_map(|row| row.names.split_whitespace().map(move |names| (row, names)))
}

/// Reads an option into the settings of its job. Returns fio's first name for it.
///
/// # Errors
/// fio has no such option, it is not modelled, or its value is missing, wrong or not modelled.
pub(super) fn read(option: &Opt, settings: &mut Settings, notes: &mut Notes) -> Result<&'static str, JobError> {
    let typed = option.key.as_str();
    let Some((row, names)) = all().find(|(_, names)| names.split('=').any(|name| name == typed)) else {
        let shown: String = typed.chars().take(80).collect();
        let hint = nearest(typed).map_or_else(String::new, |n| format!("; did you mean {n}?"));
        return Err(option.error(format!("\"{shown}\" is not an option of fio{hint}")));
    };
    let key = names.split('=').next().unwrap_or(names);
    match &row.meaning {
        Meaning::Simulated(reads) => {
            let kb = settings.kb_base;
            let given = &mut Given { key, at: &option.at, kb, notes };
            reads
                .apply(settings, option.value.as_ref(), given)
                .map_err(|message| option.error(format!("{key}: {message}")))?;
        }
        Meaning::NoEffect(_) => {
            let what = match row.category {
                CHECK => "is not checked: in fio a job that fails it ends, here it goes on",
                _ => "has no meaning here and is ignored",
            };
            notes.add(key, &option.at, || format!("option {key} {what}"));
        }
        Meaning::NotModelled(_, off) if option.value.as_deref().is_some_and(|v| off.contains(&v)) => {}
        Meaning::NotModelled(_, off) => {
            let or = off.first().map_or_else(String::new, |value| format!(", or give {typed}={value}"));
            let message = format!("option {typed} would change the result and is not modelled; leave it out{or}");
            return Err(option.error(message));
        }
    }
    Ok(key)
}

/// The known name nearest to `key`, when at most two letters differ.
fn nearest(key: &str) -> Option<&'static str> {
    if key.len() > 40 {
        return None;
    }
    let names = all().flat_map(|(_, names)| names.split('='));
    names.map(|name| (levenshtein(key, name), name)).filter(|d| d.0 <= 2 && d.0 < key.len()).min().map(|d| d.1)
}

/// The table in Markdown, for the book: simulated options, options without effect, options that are not modelled.
pub fn reference() -> String {
    let mut parts = [
        "## Simulated\n\n| option | category | value |\n|---|---|---|\n".to_owned(),
        "\n## Without effect on the result\n\n| options | category | value |\n|---|---|---|\n".to_owned(),
        "\n## Not modelled\n\n| options | category | value | accepted with |\n|---|---|---|---|\n".to_owned(),
    ];
    for row in TABLE {
        let names = row.names.split_whitespace().map(|names| names.replace('=', "` = `"));
        let names = names.collect::<Vec<_>>().join("`, `");
        let category = row.category;
        let _ = match &row.meaning {
            Meaning::Simulated(reads) => writeln!(parts[0], "| `{names}` | {category} | {} |", reads.expected()),
            Meaning::NoEffect(kind) => writeln!(parts[1], "| `{names}` | {category} | {} |", kind),
            Meaning::NotModelled(kind, off) => {
                let off = off.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
                writeln!(parts[2], "| `{names}` | {category} | {} | {off} |", kind)
            }
        };
    }
    parts.concat()
}

impl Reads {
    fn expected(&self) -> String {
        match self {
            Reads::Switch(_) => SWITCH.to_owned(),
            Reads::Number(min, ANY, _) => format!("number from {min}"),
            Reads::Number(min, max, _) => format!("{min} to {max}"),
            Reads::Amount(_, _) => "bytes or percent".to_owned(),
            Reads::Time(Unit::Second, _) => "time in s".to_owned(),
            Reads::Time(Unit::Microsecond, _) => "time in us".to_owned(),
            Reads::Other(kind, _) => (*kind).to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::process::{Command, Stdio};

    fn names() -> BTreeSet<&'static str> {
        all().flat_map(|(_, names)| names.split('=')).collect()
    }

    #[test]
    fn every_name_stands_once() {
        assert_eq!(names().len(), all().map(|(_, names)| names.split('=').count()).sum::<usize>());
    }

    /// Names are facts about fio 3.33, kept apart from the table: without fio the next test cannot look.
    #[test]
    fn every_option_of_fio_3_33_is_known() {
        let of_fio =
            include_str!("../../tests/data/fio-3.33-options.txt").lines().filter(|line| !line.starts_with('#'));
        let of_fio: BTreeSet<&str> = of_fio.flat_map(str::split_whitespace).collect();
        assert!(of_fio.len() > 300 && of_fio.contains("threads"), "profiles too");
        assert_eq!(of_fio.difference(&names()).collect::<Vec<_>>(), [&""; 0]);
    }

    #[test]
    fn nearest_name() {
        assert_eq!(nearest("iodpeth"), Some("iodepth"));
        assert_eq!(nearest("rwmixraed"), Some("rwmixread"));
        assert_eq!(nearest("nr_fiels"), Some("nr_files"));
        assert_eq!(nearest("colour"), None);
    }

    /// What fio prints when asked for help on each of these; nothing where there is no fio.
    fn fio(arguments: impl IntoIterator<Item = String>) -> String {
        let run = |argument| Command::new("fio").arg(argument).stdout(Stdio::piped()).spawn();
        let started: Vec<_> = arguments.into_iter().filter_map(|argument| run(argument).ok()).collect();
        let printed = started.into_iter().filter_map(|child| child.wait_with_output().ok());
        printed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).collect()
    }

    #[test]
    fn every_option_of_the_installed_fio_is_known() {
        let (options, engines) = (fio(["--cmdhelp=all".into()]), fio(["--enghelp".into()]));
        if options.is_empty() {
            return println!("SKIPPED: there is no fio");
        }
        let first = |line: &str| line.split([':', ' ']).find(|word| !word.is_empty()).map(str::to_owned);
        let mut of_fio: BTreeSet<String> = options.lines().filter_map(first).collect();
        let aliases = fio(of_fio.iter().map(|option| format!("--cmdhelp={option}")));
        of_fio.extend(aliases.lines().filter_map(|line| line.trim().strip_prefix("alias: ")).map(str::to_owned));
        let of_engines = fio(engines.lines().skip(1).map(|engine| format!("--enghelp={}", engine.trim())));
        of_fio.extend(of_engines.lines().filter(|line| line.contains(':')).filter_map(first));
        assert!(of_fio.contains("blocksize") && of_fio.contains("cmd_type") && of_fio.len() > 200, "{of_fio:?}");
        let known = names();
        let unknown: Vec<_> = of_fio.iter().filter(|name| !known.contains(name.as_str())).collect();
        assert!(unknown.is_empty(), "not in the table: {unknown:?}");
    }
}
