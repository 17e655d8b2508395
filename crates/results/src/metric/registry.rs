// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registry: every metric that Readpath writes into a document. `docs/formats/results.md` is made of it.

use super::requests::DEFINITIONS;
use super::{Better, Definition, Metric};

/// Metrics that belong together, under a title. A line for each: constant, name, unit, heading, which way is better,
/// and what it is.
macro_rules! registry {
    ($($title:literal $(with $more:ident)? {
        $($id:ident $name:literal $unit:literal $heading:literal $better:ident $what:literal;)*
    })*) => {
        $($(#[doc = concat!($what, ".")] pub const $id: Metric = Metric::known($name, $unit);)*)*

        /// All metrics, in sections of the same kind.
        pub const SECTIONS: &[(&str, &[Definition])] = &[$(
            $(($title, $more),)?
            ($title, &[$(Definition {
                name: $name, unit: $unit, heading: $heading, better: Better::$better, what: $what,
            }),*]),
        )*];
    };
}

registry! {
    "Requests" with DEFINITIONS {
        REQUESTS "requests" "" "requests" Neither "requests that ended; of a recorded trace, those that are in it";
        START_UP_TIME "start_up_time" "s" "start-up" Less "time until all applications of a cycle have started";
        MOST_OUTSTANDING "most_outstanding" "" "most in flight" Neither "most requests that had begun and not ended";
        VIRTUAL_DURATION "virtual_duration" "s" "duration" Less "from the start of the phase to the end of its last \
            request";
        GAIN "{metric}_gain" "%" "" More "how far a metric is above that of the base variant of a claim, in % of it";
    }
    "Maps and memory" {
        MAP_HIT_RATIO "map_hit_ratio" "%" "map hits" More "blocks read that did not wait for a map page: good HPB \
            entry, or map page in SRAM; of all whose place in flash had to be found";
        HPB_HIT_RATIO "hpb_hit_ratio" "%" "HPB hits" More "those with a good HPB entry";
        HOST_MAP_HIT_RATIO "host_map_hit_ratio" "%" "" More "those translated from a copy of their map page in host \
            memory";
        MAP_LOADS "map_loads" "" "map loads" Less "map pages read from flash, for translation and for HPB READ \
            BUFFER";
        READ_BUFFER_MAP_LOADS "read_buffer_map_loads" "" "of READ BUFFER" Less "of those, pages for HPB READ BUFFER";
        HPB_READ_BUFFERS "hpb_read_buffers" "" "" Less "HPB READ BUFFER commands";
        HOST_MEMORY "host_memory" "bytes" "host memory" Less "the most that maps and dirty bitmaps took on the host, \
            and the tables beside them";
        DEVICE_MAP_MEMORY "device_map_memory" "bytes" "map, device" Less "SRAM of the device for the map: cache, its \
            index, directory";
        DEVICE_SRAM "device_sram" "bytes" "SRAM" Less "all SRAM of the device";
        DEVICE_DRAM "device_dram" "bytes" "DRAM" Less "DRAM of the device";
        MAP_READS_PER_REQUEST "map_reads_per_request" "" "map reads/request" Less "map pages read from flash, \
            whatever needed them, for each request of the host";
        FLASH_READS_PER_REQUEST "flash_reads_per_request" "" "flash reads/request" Less "all pages read from flash \
            for each request of the host";
        HOST_MAP_LINK_UP "host_map_link_up" "%" "link up, map" Less "share of the phase for which the link to the \
            host was busy with the map";
        HOST_MAP_LINK_DOWN "host_map_link_down" "%" "link down, map" Less "share of the phase for which the link to \
            the device was busy with the map";
        HOST_MAP_FETCHES "host_map_fetches" "" "" Neither "fetches of map entries from host memory";
        HOST_MAP_FILLS "host_map_fills" "" "" Neither "map pages written to host memory because they were read from \
            flash";
        HOST_MAP_UPDATES "host_map_updates" "" "" Neither "map pages written to host memory because they were written \
            back";
        HOST_MAP_STALE "host_map_stale" "" "" Less "fetches whose answer was out of date, and which were made anew or \
            served from flash";
        HOST_MAP_BYTES_READ "host_map_bytes_read" "bytes" "" Less "entries that came from host memory";
        HOST_MAP_BYTES_WRITTEN "host_map_bytes_written" "bytes" "" Less "entries that went to host memory";
    }
    "Counters of the HPB driver" {
        HIT_CNT "hit_cnt" "" "HPB READs" More "reads sent as HPB READ";
        MISS_CNT "miss_cnt" "" "" Less "reads short enough for HPB READ that were sent as READ because an entry was \
            missing or dirty";
        RCMD_NOTI_CNT "rcmd_noti_cnt" "" "" Neither "valid notifications";
        RCMD_ACTIVE_CNT "rcmd_active_cnt" "" "" Neither "sub-regions queued for activation";
        RCMD_INACTIVE_CNT "rcmd_inactive_cnt" "" "" Neither "regions queued for inactivation";
        MAP_REQ_CNT "map_req_cnt" "" "loads" Less "HPB READ BUFFER commands";
        UMAP_REQ_CNT "umap_req_cnt" "" "" Neither "HPB WRITE BUFFER commands; none in device control mode";
        PRE_REQ_CNT "pre_req_cnt" "" "" Neither "pre-requests (HPB WRITE BUFFER 02h); no row where there is none";
        PAIR_CNT "pair_cnt" "" "" Neither "changed entries that responses of the prototype brought; no row where \
            there is none";
        EVICT_CNT "evict_cnt" "" "evictions" Less "regions dropped to make room for another; this and the next three \
            of this host's own policies only";
        REFUSE_CNT "refuse_cnt" "" "refused" Neither "loads that a policy asked for and did not get: nothing that it \
            holds was worth less, or too many waited already";
        PLAIN_CNT "plain_cnt" "" "plain reads" Neither "reads that a policy sent as READ although it had an entry";
        SHRINK_CNT "shrink_cnt" "" "" Neither "maps that the host dropped because its limit was lowered";
    }
    "Writes" {
        DATA_WRITE_AMPLIFICATION "data_write_amplification" "" "" Less "data programmed for the host and moved data, \
            over data programmed for the host: what published formulas speak of";
        WRITE_AMPLIFICATION "write_amplification" "" "write ampl." Less "all programs in blocks of 4 KiB, padding, \
            map pages, journal and checkpoints included, over blocks that the host wrote";
        PROGRAMS "programs" "" "" Less "multi-plane pages programmed, for whatever purpose";
        SLICES_MOVED "slices_moved" "" "" Less "blocks moved by collection, wear levelling and the repair of \
            disturbed data";
        SLICES_PADDED "slices_padded" "" "" Less "blocks of padding in programs of data";
        MAP_WRITES "map_writes" "" "map writes" Less "map pages programmed";
        JOURNAL_WRITES "journal_writes" "" "" Less "parts of the journal programmed, each as long as a map page";
        CHECKPOINT_WRITES "checkpoint_writes" "" "" Less "parts of checkpoints programmed, each as long as a map \
            page";
        ERASES "erases" "" "erases" Less "blocks erased, one per die and superblock";
        SUPERBLOCKS_COLLECTED "superblocks_collected" "" "" Less "superblocks emptied for space";
        SUPERBLOCKS_LEVELLED "superblocks_levelled" "" "" Less "superblocks emptied to level wear";
        SUPERBLOCKS_COLLECTED_IDLE "superblocks_collected_idle" "" "" Neither "of those for space, superblocks \
            emptied while the host was idle, also behind the last request; no row where there is none";
        SUPERBLOCKS_REFRESHED "superblocks_refreshed" "" "" Less "superblocks emptied because they were read very \
            often; no row where there is none";
        PROGRAM_FAILURES "program_failures" "" "" Less "programs that failed; no row where none did";
        ERASE_FAILURES "erase_failures" "" "" Less "erases that failed; no row where none did";
        STALL_SPACE "stall_space" "ms" "" Less "time for which writes waited in the device for space";
        STALL_MAP "stall_map" "ms" "" Less "the same for room in the table of changes";
        STALL_JOURNAL "stall_journal" "ms" "" Less "the same for the journal";
        STALL_CHECKPOINT "stall_checkpoint" "ms" "" Less "the same for a checkpoint";
        STALL_FLASH "stall_flash" "ms" "" Less "the same for programs in progress";
        SLICES_BOOSTED "slices_boosted" "" "" Neither "blocks programmed into the WriteBooster buffer; this and the \
            next three of devices with one only";
        SLICES_FLUSHED "slices_flushed" "" "" Less "blocks moved out of it";
        SUPERBLOCKS_FLUSHED "superblocks_flushed" "" "" Less "superblocks emptied by a flush of it";
        SLC_ERASES "slc_erases" "" "" Less "blocks erased in SLC mode";
        ERASE_COUNT_MEAN "erase_count_mean" "" "" Less "mean erase count of superblocks at the end of the phase, over \
            the life of the device. Those of the map count like those of data; anchors and retired superblocks do \
            not";
        ERASE_COUNT_MIN "erase_count_min" "" "" Neither "the smallest of these counts";
        ERASE_COUNT_MAX "erase_count_max" "" "" Less "the largest of these counts";
        ERASE_COUNT_SPREAD "erase_count_spread" "%" "" Less "the largest distance of a count from the mean, in \
            percent of the mean";
        ANCHOR_ERASE_COUNT_MAX "anchor_erase_count_max" "" "" Less "the greater count of the two superblocks of \
            anchors";
        BAD_BLOCKS "bad_blocks" "" "" Less "bad blocks, one per die and superblock, at the end of the phase; no row \
            where there is none";
        SUPERBLOCKS_RETIRED "superblocks_retired" "" "" Less "superblocks out of use because of them; no row where \
            there is none";
    }
    "Events" {
        SPAN "span" "ms" "" Neither "virtual time from this event to the next; the first part begins when the host \
            has found the device, or the trace begins";
        RECOVERY "recovery" "ms" "recovery" Less "from the return of the power until the device was ready; only \
            behind a power cycle";
        BLOCKS_READ "blocks_read" "" "" Neither "blocks of 4 KiB read from flash for which an address was found, in \
            whatever map";
        HOST_MEMORY_HELD "host_memory_held" "bytes" "memory held" Less "maps, dirty bitmaps and tables of the host's \
            HPB at the end of the part";
    }
    "Power cuts" {
        POWER_CUTS "power_cuts" "" "cuts" Neither "times that the power was cut";
        REQUESTS_IN_FLIGHT_MEAN "requests_in_flight_mean" "" "in flight, mean" Neither "requests in progress at a \
            cut, mean over the cuts";
        RECOVERY_TIME_MEAN "recovery_time_mean" "ms" "recovery, mean" Less "from the return of the power until the \
            device takes commands, mean over the cuts";
        RECOVERY_TIME_MAX "recovery_time_max" "ms" "recovery, longest" Less "the longest of them";
        RECOVERY_TIME_BOUND "recovery_time_bound" "ms" "recovery, at most" Less "the most that the device's \
            configuration allows";
        RECOVERY_READS_MEAN "recovery_reads_mean" "" "" Less "pages read by a recovery, mean over the cuts";
        RECOVERY_READS_MAX "recovery_reads_max" "" "pages read, most" Less "the most of them";
        RECOVERY_READS_BOUND "recovery_reads_bound" "" "" Less "the most that the device's configuration allows";
        TORN_UNITS "torn_units" "" "torn units" Neither "programs that a cut tore";
        BLOCKS_CHECKED "blocks_checked" "" "blocks checked" Neither "blocks of 4 KiB that were read and compared with \
            what they may be";
        BLOCKS_WRONG "blocks_wrong" "" "blocks wrong" Less "those that were something else";
        HPB_RESETS_ANNOUNCED "hpb_resets_announced" "" "" Neither "responses with operation 02h, which tell the host \
            that all entries are void";
        HIT_CNT_AFTER_CUTS "hit_cnt_after_cuts" "" "" More "of `hit_cnt`, those behind the first cut";
    }
    "HPB entries and attacks" {
        HPB_ZERO "hpb_zero" "" "zero" Neither "entries of all zeros";
        HPB_INACTIVE "hpb_inactive" "" "" Neither "entries of a sub-region that the device has not given out, or no \
            longer";
        HPB_STALE "hpb_stale" "" "stale" Neither "authentic entries that are no longer current";
        HPB_FORGED "hpb_forged" "" "forged" Neither "entries that this device did not make for this block";
        HPB_FOREIGN "hpb_foreign" "" "foreign" Neither "entries that it made for another block, where it can tell \
            them from forged ones; of the prototype, blocks that were not where a hint said";
        DIRTY_GROUPS_NAMED "dirty_groups_named" "" "" Neither "responses of the prototype that named a dirty group";
        ENTRIES_PIGGYBACKED "entries_piggybacked" "" "" Neither "responses of the prototype that brought an entry";
        TRIES "tries" "" "tries" Neither "HPB READs with an entry that the block should not be read by";
        BELIEVED "believed" "" "believed" Less "of those, entries that were believed";
        BELIEVED_SHARE "believed_share" "%" "believed" Less "the same in % of the tries";
        BELIEVED_EXPECTED "believed_expected" "%" "expected" Neither "what guessing a tag of so many bits should \
            give";
        LEAKED "leaked" "" "leaked" Less "reads that returned anything but what a READ would have";
        TIME_OF_A_TRY "time_of_a_try" "us" "" Neither "mean virtual time of a try, one after the other";
    }
    "Policies side by side" {
        START_UP_AGAINST_DCM "start_up_against_dcm" "%" "to dcm" Less "`start_up_time` above that of `linux-dcm` with \
            the same memory, in % of it";
        START_UP_AGAINST_HCM "start_up_against_hcm" "%" "" Less "the same for `linux-hcm`";
        MAP_LOADS_AGAINST_DCM "map_loads_against_dcm" "%" "to dcm" Less "`map_loads` above that of `linux-dcm` with \
            the same memory, in % of it";
        MAP_LOADS_AGAINST_HCM "map_loads_against_hcm" "%" "to hcm" Less "the same for `linux-hcm`";
        READ_LATENCY_AGAINST_DCM "read_latency_against_dcm" "%" "to dcm" Less "`read_latency_mean` above that of \
            `linux-dcm` with the same memory, in % of it";
        READ_LATENCY_AGAINST_HCM "read_latency_against_hcm" "%" "to hcm" Less "the same for `linux-hcm`";
    }
    "Recorded traces" {
        TRACE_SPAN "span" "s" "" Neither "from the first request to the last";
        REQUEST_RATE "request_rate" "1/s" "" Neither "requests over `span`";
        READ_RATIO "read_ratio" "%" "" Neither "reads among reads and writes";
        SIZES_UP_TO "{requests}_size_up_to_{n}_bytes" "" "" Neither "requests of a class of sizes, up to so many \
            bytes and more than in the class before";
        SIZES_LARGER "{requests}_size_larger" "" "" Neither "requests larger than in all other classes";
        PREFLUSHES "preflushes" "" "" Neither "requests with a flush before them";
        FOOTPRINT_BLOCKS "footprint_blocks" "" "" Neither "blocks of 4 KiB that are touched at all";
        FOOTPRINT_READ_BLOCKS "footprint_read_blocks" "" "" Neither "blocks that are read";
        FOOTPRINT_WRITTEN_BLOCKS "footprint_written_blocks" "" "" Neither "blocks that are written";
        FOOTPRINT_READ_FIRST_BLOCKS "footprint_read_first_blocks" "" "" Neither "blocks that are read before anything \
            writes them: they were there when the trace began";
        FOOTPRINT_ONLY_READ_BLOCKS "footprint_only_read_blocks" "" "" Neither "blocks that are read and never \
            written";
        FOOTPRINT_BYTES "footprint_bytes" "bytes" "" Neither "`footprint_blocks` in bytes";
        ADDRESS_END "address_end" "bytes" "" Neither "where the addresses end";
        BLOCK_READS_AGAIN "block_reads_again" "%" "" Neither "blocks read that had been read before, of all blocks \
            read";
        MAP_PAGES "map_pages_{span}" "" "" Neither "map pages that span so much of the addresses and are read by";
        MAP_PAGE_ACCESSES "map_page_accesses_{span}" "" "" Neither "accesses of reads to such map pages";
        LRU_HITS "lru_hits_{span}_{n}_pages" "%" "" Neither "of those, hits of a least-recently-used cache of so many \
            pages";
        PAUSES_FROM "pauses_from_{n}_ms" "" "" Neither "pauses between requests of at least so many milliseconds, and \
            less than in the next class";
        LONGEST_PAUSE "longest_pause" "s" "" Neither "the longest pause";
        QUEUE_DEPTH_MEAN "queue_depth_mean" "" "" Neither "requests in progress, mean over time; this and the next \
            two of traces with latencies only";
        QUEUE_DEPTH_MOST "queue_depth_most" "" "" Neither "most requests in progress";
        BUSY_TIME "busy_time" "s" "" Neither "time with at least one request in progress";
    }
    "Read caches of UBI" {
        HITS "hits" "" "hits" More "reads that were served from a line of the cache";
        MISSES "misses" "" "misses" Less "reads that had to go to flash although the cache was asked";
        NO_QUERY "no_query" "" "no query" Neither "reads for which it was not asked: as long as a page or longer, or \
            across a border of pages";
        HIT_RATIO "hit_ratio" "%" "hit ratio" More "hits over hits and misses";
        PAGE_READS "page_reads" "" "page reads" Less "pages read from flash, whole or in part";
        WHOLE_PAGE_READS "whole_page_reads" "" "of them whole" Less "of those, whole pages";
        PART_READS "part_reads" "" "" Less "of those, parts of a page";
        SECONDS "seconds" "s" "seconds" Less "time of all reads by the cost model: waiting for the chip, and CPU";
        WAIT_SECONDS "wait_seconds" "s" "" Less "of that, waiting";
        CPU_SECONDS "cpu_seconds" "s" "" Less "of that, CPU";
        DATA_MOVED "data_moved" "bytes" "" Less "bytes that came from the chip, in whole ECC steps";
        FILLS "fills" "" "" Neither "pages that filled a line";
        BYPASSES "bypasses" "" "" Neither "misses that filled no line";
        DROPPED_BY_WRITE "dropped_by_write" "" "" Neither "lines dropped because their page was written";
        DROPPED_BY_ERASE "dropped_by_erase" "" "" Neither "lines dropped because their block was erased";
        LINES_MEMORY "lines_memory" "bytes" "" Less "the most that lines took at a time";
        METADATA_MEMORY "metadata_memory" "bytes" "metadata" Less "what the policy keeps beside the lines";
        OTHER_PAGE_READS "other_page_reads" "" "other reads" Less "page reads that do not pass ubi_eba_read_leb, as \
            when a device is attached";
        OTHER_SECONDS "other_seconds" "s" "their seconds" Less "time of those";
        REAL_SECONDS "real_seconds" "s" "real" Less "time of a task of the published table, from start to end";
        SYS_SECONDS "sys_seconds" "s" "sys" Less "of that, CPU in the kernel";
        HEADER_SECONDS "header_seconds" "s" "headers" Less "of that, reads of headers and of the volume table";
        READ_SECONDS "read_seconds" "s" "reads" Less "of that, reads through ubi_eba_read_leb";
    }
    "Speed of Readpath itself" {
        SIMULATED_IOS_PER_CPU_SECOND "simulated_ios_per_cpu_second" "1/s" "" More "requests simulated in a second of \
            CPU time";
        CPU_TIME_PER_IO "cpu_time_per_io" "ns" "" Less "CPU time of a request";
        PASSES_BEFORE "passes_before" "" "" Neither "times that the range was overwritten until write amplification \
            was steady";
        PARSED_PER_CPU_SECOND "parsed_per_cpu_second" "MB/s" "" More "bytes of a trace read in a second of CPU time";
        LOOKUPS_PER_CPU_SECOND "lookups_per_cpu_second" "1/s" "" More "reads looked up in a cache of UBI in a second \
            of CPU time";
        CPU_TIME "cpu_time" "s" "" Less "CPU time of the whole work";
        CPU_TIME_PER_ITEM "cpu_time_per_item" "ns" "" Less "CPU time of one of the things that were found";
        START_CPU_TIME "start_cpu_time" "s" "" Less "CPU time until a device is made, filled and found by its host";
        PROCESS_BYTES_PER_BLOCK "process_bytes_per_block" "bytes" "" Less "memory of this process for each logical \
            block of 4 KiB";
    }
}
