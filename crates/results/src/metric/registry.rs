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
        REQUESTS "requests" "" "requests" Neither "requests that ended; for a recorded trace, those in it";
        START_UP_TIME "start_up_time" "s" "start-up" Less "time until all applications of a cycle have started";
        MOST_OUTSTANDING "most_outstanding" "" "most in flight" Neither "most requests in flight";
        VIRTUAL_DURATION "virtual_duration" "s" "duration" Less "from the start of the phase to the end of its last \
            request";
        GAIN "{metric}_gain" "%" "" More "by how much a metric exceeds that of a claim's base variant, in percent";
    }
    "Studies" {
        POINTS "points" "" "" Neither "points of a study that have the same settings, and so the same seed and \
            figures; no row if one";
        VARIANCE_SHARE "variance_share" "%" "share alone" Neither "share of the variance of a figure over the points \
            of a study that a factor alone explains";
        FIRST_ORDER "first_order_index" "%" "alone" Neither "Sobol's first-order index: the same, estimated from \
            Saltelli's points";
        FIRST_ORDER_ERROR "first_order_error" "%" "±" Neither "half of the 95 % interval of `first_order_index`, in \
            points";
        TOTAL_EFFECT "total_effect_index" "%" "with others" Neither "Sobol's total index: the share of the variance \
            that a factor has a part in, alone or with others";
        TOTAL_EFFECT_ERROR "total_effect_error" "%" "±" Neither "half of the 95 % interval of `total_effect_index`, in \
            points";
        MEAN_EFFECT "mean_effect" "%" "mean effect" Neither "Morris's mu*: by how much the figure changes when a \
            factor changes by half of its levels, on average without the sign, in percent of its mean";
        EFFECT_SPREAD "effect_spread" "%" "spread" Neither "Morris's sigma: the standard deviation of these changes, \
            which tells of curvature and of other factors";
    }
    "Maps and memory" {
        MAP_HIT_RATIO "map_hit_ratio" "%" "map hits" More "blocks read that did not wait for a map page: good HPB \
            entry, or map page in SRAM";
        HPB_HIT_RATIO "hpb_hit_ratio" "%" "HPB hits" More "blocks read with a good HPB entry";
        HOST_MAP_HIT_RATIO "host_map_hit_ratio" "%" "" More "blocks translated from a copy of their map page in host \
            memory";
        MAP_LOADS "map_loads" "" "map loads" Less "map pages read from flash, for translation and for HPB READ \
            BUFFER";
        RUN_HIT_RATIO "run_hit_ratio" "%" "run hits" More "blocks translated by a run of the map \
            (`map_cache.runs_kib`); they count in `map_hit_ratio` too";
        MAP_LOADS_AHEAD "map_loads_ahead" "" "read ahead" Less "map pages read from flash ahead of any read \
            (`map_cache.read_ahead`); they count in `map_loads` too";
        MAP_AHEAD_UNUSED "map_ahead_unused" "" "unused" Less "map pages read ahead that left the map cache before any \
            read asked for them";
        READ_BUFFER_MAP_LOADS "read_buffer_map_loads" "" "of READ BUFFER" Less "map pages read from flash for HPB READ \
            BUFFER alone";
        HPB_READ_BUFFERS "hpb_read_buffers" "" "" Less "HPB READ BUFFER commands";
        HOST_MEMORY "host_memory" "bytes" "host memory" Less "peak memory of maps and dirty bitmaps on the host, plus \
            their tables, `host_zone_map` included";
        MEMORY_WOULD_SAVE "memory_would_save" "%" "more saves" Less "share of the mean time of a request that the \
            largest host memory of the experiment would save";
        MEMORY_WOULD_SAVE_ERROR "memory_would_save_error" "%" "±" Less "half of the 95 % confidence interval of \
            `memory_would_save`, in points; not given where all parts of the runs save the same";
        DEVICE_MAP_MEMORY "device_map_memory" "bytes" "map, device" Less "SRAM of the device for the map: cache, its \
            index, directory";
        DEVICE_SRAM "device_sram" "bytes" "SRAM" Less "all SRAM of the device";
        DEVICE_DRAM "device_dram" "bytes" "DRAM" Less "DRAM of the device";
        MAP_READS_PER_REQUEST "map_reads_per_request" "" "map reads/request" Less "map pages read from flash for each \
            request of the host, for any purpose";
        FLASH_READS_PER_REQUEST "flash_reads_per_request" "" "flash reads/request" Less "pages read from flash for \
            each request of the host, for any purpose";
        HOST_MAP_LINK_UP "host_map_link_up" "%" "link up, map" Less "share of the phase in which the link to the host \
            carried the map";
        HOST_MAP_LINK_DOWN "host_map_link_down" "%" "link down, map" Less "share of the phase in which the link to the \
            device carried the map";
        HOST_MAP_FETCHES "host_map_fetches" "" "" Neither "fetches of map entries from host memory";
        HOST_MAP_FILLS "host_map_fills" "" "" Neither "map pages written to host memory after a read from flash";
        HOST_MAP_UPDATES "host_map_updates" "" "" Neither "map pages written to host memory after a write-back";
        HOST_MAP_STALE "host_map_stale" "" "" Less "fetches whose answer was out of date; they are repeated or served \
            from flash";
        HOST_MAP_BYTES_READ "host_map_bytes_read" "bytes" "" Less "bytes of entries read from host memory";
        HOST_MAP_BYTES_WRITTEN "host_map_bytes_written" "bytes" "" Less "bytes of entries written to host memory";
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
        PRE_REQ_CNT "pre_req_cnt" "" "" Neither "pre-requests (HPB WRITE BUFFER 02h); no row if zero";
        PAIR_CNT "pair_cnt" "" "" Neither "changed entries that responses of the prototype brought; no row if zero";
        EVICT_CNT "evict_cnt" "" "evictions" Less "regions dropped to make room for another; this and the next three \
            for policies other than linux-dcm and linux-hcm only";
        REFUSE_CNT "refuse_cnt" "" "refused" Neither "loads that a policy asked for and did not get: no map held was \
            worth less, or too many loads were waiting";
        PLAIN_CNT "plain_cnt" "" "plain reads" Neither "reads sent as READ although the host had an entry, \
            because a pre-request does not pay";
        SHRINK_CNT "shrink_cnt" "" "" Neither "maps that the host dropped because its limit was lowered";
    }
    "Writes" {
        DATA_WRITE_AMPLIFICATION "data_write_amplification" "" "" Less "data programmed for the host and moved data, \
            over data programmed for the host: the measure of published formulas";
        WRITE_AMPLIFICATION "write_amplification" "" "write ampl." Less "all programs in blocks of 4 KiB, padding, \
            map pages, journal and checkpoints included, over blocks that the host wrote";
        AMPLIFICATION_HOST "write_amplification_host" "" "" Less "the part of `write_amplification` that is data \
            of the host. This and the next ten add up to it; a part that is zero has no row";
        AMPLIFICATION_COLLECTION "write_amplification_collection" "" "" Less "data moved by garbage collection";
        AMPLIFICATION_RESTS "write_amplification_rests" "" "" Less "data of zones programmed before it filled a \
            program";
        AMPLIFICATION_FOLDING "write_amplification_folding" "" "" Less "data moved out of the SLC cache";
        AMPLIFICATION_LEVELLING "write_amplification_levelling" "" "" Less "data moved to level wear";
        AMPLIFICATION_REFRESH "write_amplification_refresh" "" "" Less "data moved because of read disturb";
        AMPLIFICATION_MAP "write_amplification_map" "" "" Less "map pages";
        AMPLIFICATION_JOURNAL "write_amplification_journal" "" "" Less "the journal";
        AMPLIFICATION_CHECKPOINTS "write_amplification_checkpoints" "" "" Less "checkpoints and their anchors";
        AMPLIFICATION_TABLES "write_amplification_tables" "" "" Less "tables of superblocks";
        AMPLIFICATION_PADDING "write_amplification_padding" "" "" Less "padding of multi-plane pages that did not fill";
        AMPLIFICATION_FULL_CELLS "write_amplification_full_cells" "" "" Less "the part of `write_amplification` in \
            cells with all their bits. This and the next two add up to it, for devices with an `[slc]` table";
        AMPLIFICATION_SLC "write_amplification_slc" "" "" Less "the SLC cache, in whatever mode";
        AMPLIFICATION_SLC_MAP "write_amplification_slc_map" "" "" Less "map pages, journal and checkpoints in SLC mode";
        PROGRAMS "programs" "" "" Less "multi-plane pages programmed, for any purpose";
        SLICES_MOVED "slices_moved" "" "" Less "blocks moved by garbage collection, wear leveling and read-disturb \
            repair";
        SLICES_PADDED "slices_padded" "" "" Less "blocks of padding in programs of data";
        MAP_WRITES "map_writes" "" "map writes" Less "map pages programmed";
        JOURNAL_WRITES "journal_writes" "" "" Less "parts of the journal programmed, each as long as a map page";
        CHECKPOINT_WRITES "checkpoint_writes" "" "" Less "parts of checkpoints programmed, each as long as a map \
            page";
        ERASES "erases" "" "erases" Less "blocks erased, one per die and superblock";
        SUPERBLOCKS_COLLECTED "superblocks_collected" "" "" Less "superblocks emptied for space";
        SUPERBLOCKS_LEVELLED "superblocks_levelled" "" "" Less "superblocks emptied for wear leveling";
        SUPERBLOCKS_COLLECTED_IDLE "superblocks_collected_idle" "" "" Neither "superblocks emptied for space while the \
            host was idle, also after the last request; no row if zero";
        ZONE_EARLY_FLUSHES "zone_early_flushes" "" "" Less "times that a zone left the write buffer before its data \
            filled a program, because more zones were written than fit; no row if zero";
        SUPERBLOCKS_REFRESHED "superblocks_refreshed" "" "" Less "superblocks emptied because of read disturb; no row \
            if zero";
        PROGRAM_FAILURES "program_failures" "" "" Less "programs that failed; no row if zero";
        ERASE_FAILURES "erase_failures" "" "" Less "erases that failed; no row if zero";
        STALL_SPACE "stall_space" "ms" "" Less "time that writes waited in the device for space";
        STALL_MAP "stall_map" "ms" "" Less "time that writes waited for room in the dirty-mapping table";
        STALL_JOURNAL "stall_journal" "ms" "" Less "time that writes waited for the journal";
        STALL_CHECKPOINT "stall_checkpoint" "ms" "" Less "time that writes waited for a checkpoint";
        STALL_FLASH "stall_flash" "ms" "" Less "time that writes waited for programs in progress";
        SLICES_BOOSTED "slices_boosted" "" "" Neither "blocks programmed into the WriteBooster buffer; this and the \
            next three only for devices with WriteBooster";
        SLICES_FLUSHED "slices_flushed" "" "" Less "blocks moved out of the buffer";
        SUPERBLOCKS_FLUSHED "superblocks_flushed" "" "" Less "superblocks emptied by a flush of the buffer";
        SLC_ERASES "slc_erases" "" "" Less "blocks erased that were in SLC mode, or in that of the SLC cache";
        SLC_MAP_ERASES "slc_map_erases" "" "" Less "of those, blocks of map pages, journal and checkpoints; no row if \
            zero";
        CACHED_WRITE "cached_write" "GB" "" More "written into the cache in SLC mode before data of the host went past \
            it. This and the next five for a run that is kept over time, begins in the cache and leaves it";
        CACHED_WRITE_THROUGHPUT "cached_write_throughput" "MiB/s" "" More "speed of writes into the cache";
        DIRECT_WRITE_THROUGHPUT "direct_write_throughput" "MiB/s" "" More "speed of writes past the full cache";
        UNCACHED_WRITE_THROUGHPUT "uncached_write_throughput" "MiB/s" "" More "speed of all writes once the cache \
            was full";
        FOLDING_FROM "folding_from" "GB" "" More "what the host had written when a tenth as much or more was moved \
            beside its data";
        FOLDING_WRITE_THROUGHPUT "folding_write_throughput" "MiB/s" "" More "speed of writes from there on";
        LIFE_USED "life_used" "%" "life used" Less "share of the life of all cells that the erases of the phase used: \
            each one over `flash.life_erases`, or over `slc.life_erases` in SLC mode, in the mean of all superblocks \
            but those of anchors. This and the next ones have no row if zero";
        LIFE_USED_SLC "life_used_slc" "%" "" Less "of that, by erases of the SLC cache";
        LIFE_USED_SLC_MAP "life_used_slc_map" "%" "" Less "of that, by erases of the map in SLC mode";
        CACHE_LIFE_USED "cache_life_used" "%" "" Less "share of the erases after which the cache in SLC mode takes no \
            more data";
        LIFE_DUE "life_due" "%" "" Less "share of that life that the blocks filled by programs of the phase take when \
            they are erased. No row, nor the next ones, if `life_used` is less than half of it";
        LIFE_YEARS "life_years" "years" "years" More "time until cells are worn if the host goes on like this without \
            pause: time of the phase over the greater of `life_used` and `life_due`";
        LIFE_YEARS_ERROR "life_years_error" "years" "±" Less "half of the 95 % confidence interval of `life_years` \
            (jackknife over sixteen parts of the run); not given if fewer than two parts wear cells";
        TBW "tbw" "TB" "TBW" More "what the host can write until cells are worn, in units of 10¹² bytes (JESD218): \
            what it wrote over the same";
        DWPD "dwpd" "1/day" "DWPD" More "drive writes a day: `tbw` over the capacity and the days of five years, the \
            usual warranty";
        ERASE_COUNT_MEAN "erase_count_mean" "" "" Less "mean erase count of superblocks at the end of the phase, over \
            the life of the device. Those of the map count like those of data; anchors and retired superblocks do \
            not";
        ERASE_COUNT_MIN "erase_count_min" "" "" Neither "the smallest of these counts";
        ERASE_COUNT_MAX "erase_count_max" "" "" Less "the largest of these counts";
        ERASE_COUNT_SPREAD "erase_count_spread" "%" "" Less "the largest deviation of a count from the mean, in \
            percent of the mean";
        ANCHOR_ERASE_COUNT_MAX "anchor_erase_count_max" "" "" Less "the greater count of the two superblocks of \
            anchors";
        BAD_BLOCKS "bad_blocks" "" "" Less "bad blocks, one per die and superblock, at the end of the phase; no row if \
            zero";
        SUPERBLOCKS_RETIRED "superblocks_retired" "" "" Less "superblocks retired because of bad blocks; no row if \
            zero";
    }
    "Zones" {
        ZONES_RESET "zones_reset" "" "zones reset" Less "zones that the host reset to write them \
            again; for devices with zoned units";
        HOST_WRITE_AMPLIFICATION "host_write_amplification" "" "host ampl." Less "blocks that a mapper on the host \
            (`host.zones.mapper`) wrote, those that its cleaning moved included, over blocks that its users wrote. \
            `write_amplification` of the device comes on top. Metadata of the mapper is not written";
        HOST_ZONE_MAP "host_zone_map" "bytes" "" Less "memory of the host for the tables of that mapper";
    }
    "Events" {
        SPAN "span" "ms" "" Neither "virtual time from this event to the next; the first part begins when the host has \
            probed the device, or the trace begins";
        RECOVERY "recovery" "ms" "recovery" Less "from the return of power until the device was ready; only after a \
            power cycle";
        BLOCKS_READ "blocks_read" "" "" Neither "blocks of 4 KiB read from flash for which an address was found, in \
            any map";
        HOST_MEMORY_HELD "host_memory_held" "bytes" "memory held" Less "maps, dirty bitmaps and tables of the host's \
            HPB at the end of the part";
    }
    "Power cuts" {
        POWER_CUTS "power_cuts" "" "cuts" Neither "number of power cuts";
        REQUESTS_IN_FLIGHT_MEAN "requests_in_flight_mean" "" "in flight, mean" Neither "requests in flight at a cut, \
            mean over the cuts";
        RECOVERY_TIME_MEAN "recovery_time_mean" "ms" "recovery, mean" Less "from the return of power until the device \
            accepts commands, mean over the cuts";
        RECOVERY_TIME_MAX "recovery_time_max" "ms" "recovery, longest" Less "the longest recovery";
        RECOVERY_TIME_BOUND "recovery_time_bound" "ms" "recovery, at most" Less "the longest recovery that the \
            configuration allows";
        RECOVERY_READS_MEAN "recovery_reads_mean" "" "" Less "pages read by a recovery, mean over the cuts";
        RECOVERY_READS_MAX "recovery_reads_max" "" "pages read, most" Less "most pages read by a recovery";
        RECOVERY_READS_BOUND "recovery_reads_bound" "" "" Less "most pages read by a recovery that the configuration \
            allows";
        TORN_UNITS "torn_units" "" "torn units" Neither "programs that a cut tore";
        BLOCKS_CHECKED "blocks_checked" "" "blocks checked" Neither "blocks of 4 KiB that were read back and checked";
        BLOCKS_WRONG "blocks_wrong" "" "blocks wrong" Less "blocks that held wrong data";
        BLOCKS_WRONG_BY_RULE "blocks_wrong_by_rule" "" "lost by rule" Less "blocks that did not hold what was \
            confirmed, because a rule kept it from the device, which did what it was asked";
        REQUESTS_RULED "requests_ruled" "" "rules acted" Neither "requests that rules acted on";
        HPB_RESETS_ANNOUNCED "hpb_resets_announced" "" "" Neither "responses with operation 02h, which tell the host \
            that all its entries are invalid";
        HIT_CNT_AFTER_CUTS "hit_cnt_after_cuts" "" "" More "the part of `hit_cnt` after the last cut";
    }
    "Crashes" {
        CRASH_STATES_LOOKED_AT "crash_states_looked_at" "" "looked at" Neither "states that a crash can leave and that \
            were looked at; of equal ones each counts";
        CRASH_STATES "crash_states" "" "states" Neither "different states among them; each was tried once";
        CRASH_STATES_FAILED "crash_states_failed" "" "failed" Less "states that CHECK did not survive";
        CRASH_LOSSES_LEAST "crash_losses_least" "" "fewest losses" Neither "requests that are lost or torn in the \
            smallest state that CHECK did not survive";
    }
    "HPB entries and attacks" {
        HPB_ZERO "hpb_zero" "" "zero" Neither "entries of all zeros";
        HPB_INACTIVE "hpb_inactive" "" "" Neither "entries of a sub-region that the device has not handed out, or no \
            longer considers active";
        HPB_STALE "hpb_stale" "" "stale" Neither "entries that the device made and that are no longer current";
        HPB_FORGED "hpb_forged" "" "forged" Neither "entries that this device did not make for this block";
        HPB_FOREIGN "hpb_foreign" "" "foreign" Neither "entries that the device made for another block, if it can tell \
            them from forged ones; for the prototype, blocks that were not where a hint said";
        DIRTY_GROUPS_NAMED "dirty_groups_named" "" "" Neither "responses of the prototype that named a dirty group";
        ENTRIES_PIGGYBACKED "entries_piggybacked" "" "" Neither "responses of the prototype that carried an entry";
        TRIES "tries" "" "tries" Neither "HPB READs with an entry that is not valid for the block";
        BELIEVED "believed" "" "believed" Less "tries whose entry was believed";
        BELIEVED_SHARE "believed_share" "%" "believed" Less "share of the tries whose entry was believed";
        BELIEVED_EXPECTED "believed_expected" "%" "expected" Neither "the share that guessing a tag of so many bits \
            should give";
        LEAKED "leaked" "" "leaked" Less "reads that returned something else than a READ would have";
        TIME_OF_A_TRY "time_of_a_try" "us" "" Neither "mean virtual time of a try, with one try at a time";
    }
    "Policies side by side" {
        START_UP_AGAINST_DCM "start_up_against_dcm" "%" "to dcm" Less "by how much `start_up_time` exceeds that of \
            `linux-dcm` with the same memory, in percent";
        START_UP_AGAINST_HCM "start_up_against_hcm" "%" "" Less "the same against `linux-hcm`";
        MAP_LOADS_AGAINST_DCM "map_loads_against_dcm" "%" "to dcm" Less "by how much `map_loads` exceeds that of \
            `linux-dcm` with the same memory, in percent";
        MAP_LOADS_AGAINST_HCM "map_loads_against_hcm" "%" "to hcm" Less "the same against `linux-hcm`";
        READ_LATENCY_AGAINST_DCM "read_latency_against_dcm" "%" "to dcm" Less "by how much `read_latency_mean` exceeds \
            that of `linux-dcm` with the same memory, in percent";
        READ_LATENCY_AGAINST_HCM "read_latency_against_hcm" "%" "to hcm" Less "the same against `linux-hcm`";
    }
    "Recorded traces" {
        TRACE_SPAN "span" "s" "" Neither "from the first request to the last";
        REQUEST_RATE "request_rate" "1/s" "" Neither "requests over `span`";
        READ_RATIO "read_ratio" "%" "" Neither "share of reads among reads and writes";
        SIZES_UP_TO "{requests}_size_up_to_{n}_bytes" "" "" Neither "requests of up to so many bytes and more than in \
            the class before";
        SIZES_LARGER "{requests}_size_larger" "" "" Neither "requests larger than in all other classes";
        PREFLUSHES "preflushes" "" "" Neither "requests with a preceding flush";
        FOOTPRINT_BLOCKS "footprint_blocks" "" "" Neither "blocks of 4 KiB that are read or written";
        FOOTPRINT_READ_BLOCKS "footprint_read_blocks" "" "" Neither "blocks that are read";
        FOOTPRINT_WRITTEN_BLOCKS "footprint_written_blocks" "" "" Neither "blocks that are written";
        FOOTPRINT_READ_FIRST_BLOCKS "footprint_read_first_blocks" "" "" Neither "blocks that are read before anything \
            writes them: they existed when the trace began";
        FOOTPRINT_ONLY_READ_BLOCKS "footprint_only_read_blocks" "" "" Neither "blocks that are read and never \
            written";
        FOOTPRINT_BYTES "footprint_bytes" "bytes" "" Neither "`footprint_blocks` in bytes";
        ADDRESS_END "address_end" "bytes" "" Neither "the end of the highest address";
        BLOCK_READS_AGAIN "block_reads_again" "%" "" Neither "share of block reads whose block had been read before";
        MAP_PAGES_OF_ALL "map_pages_touched_{span}" "" "" Neither "map pages that reads or writes touch, if a map page \
            covers so much data";
        MAP_PAGES "map_pages_{span}" "" "" Neither "map pages that reads touch, if a map page covers so much data";
        MAP_PAGE_ACCESSES "map_page_accesses_{span}" "" "" Neither "accesses of reads to these map pages";
        LRU_HITS "lru_hits_{span}_{n}_pages" "%" "" Neither "share of these accesses that hit a least-recently-used \
            cache of so many pages";
        HOTTEST "hottest_{span}_{n}_percent" "%" "" Neither "share of these accesses that go to so many percent of the \
            map pages that reads touch: the hottest; 1 % of fewer than 100 pages is one page";
        MAP_HITS_AT "map_hits_at_{n}_kib" "%" "" Neither "share of accesses to map pages that hit a \
            least-recently-used map of so much memory";
        MAP_KNEE "map_knee" "bytes" "" Neither "the smallest map, by powers of two, beyond which no doubling of \
            memory gains a point";
        MAP_ENOUGH "map_enough" "bytes" "" Neither "the smallest map that misses only what is accessed for the first \
            time";
        MAP_PAGES_TOUCHED "map_pages_touched" "" "" Neither "map pages that are accessed";
        PAUSES_FROM "pauses_from_{n}_ms" "" "" Neither "pauses between requests of at least so many milliseconds, and \
            less than in the next class";
        LONGEST_PAUSE "longest_pause" "s" "" Neither "the longest pause";
        QUEUE_DEPTH_MEAN "queue_depth_mean" "" "" Neither "requests in flight, mean over time; this and the next two \
            for traces with latencies only";
        QUEUE_DEPTH_MOST "queue_depth_most" "" "" Neither "most requests in flight";
        BUSY_TIME "busy_time" "s" "" Neither "time with at least one request in flight";
    }
    "Read caches of UBI" {
        HITS "hits" "" "hits" More "reads served from lines of the cache alone";
        MISSES "misses" "" "misses" Less "reads that the cache was asked for and could not serve, or not completely";
        NO_QUERY "no_query" "" "no query" Neither "reads for which the cache was not asked: as long as a page or \
            longer, or across a page boundary";
        HIT_RATIO "hit_ratio" "%" "hit ratio" More "hits over hits plus misses";
        PAGE_READS "page_reads" "" "page reads" Less "pages read from flash, whole or in part";
        WHOLE_PAGE_READS "whole_page_reads" "" "of them whole" Less "whole pages read from flash";
        PART_READS "part_reads" "" "" Less "parts of a page read from flash";
        SECONDS "seconds" "s" "seconds" Less "time of all reads by the cost model: waiting for the chip, and CPU";
        WAIT_SECONDS "wait_seconds" "s" "" Less "the part of `seconds` spent waiting for the chip";
        CPU_SECONDS "cpu_seconds" "s" "" Less "the part of `seconds` spent on the CPU";
        DATA_MOVED "data_moved" "bytes" "" Less "bytes transferred from the chip, in whole ECC steps";
        FILLS "fills" "" "" Neither "pages that filled a line";
        BYPASSES "bypasses" "" "" Neither "misses that filled no line";
        DROPPED_BY_WRITE "dropped_by_write" "" "" Neither "lines dropped because their page was written";
        DROPPED_BY_ERASE "dropped_by_erase" "" "" Neither "lines dropped because their block was erased";
        LINES_MEMORY "lines_memory" "bytes" "" Less "peak memory of the lines";
        METADATA_MEMORY "metadata_memory" "bytes" "metadata" Less "memory that the policy needs beside the lines";
        OTHER_PAGE_READS "other_page_reads" "" "other reads" Less "page reads that do not pass ubi_eba_read_leb, such \
            as those of an attach";
        OTHER_SECONDS "other_seconds" "s" "their seconds" Less "time of these reads";
        REAL_SECONDS "real_seconds" "s" "real" Less "elapsed time of a task of the published table";
        SYS_SECONDS "sys_seconds" "s" "sys" Less "CPU time of such a task in the kernel";
        HEADER_SECONDS "header_seconds" "s" "headers" Less "the part of it for reads of headers and of the volume \
            table";
        READ_SECONDS "read_seconds" "s" "reads" Less "time of its reads through ubi_eba_read_leb";
    }
    "Speed of Readpath itself" {
        SIMULATED_IOS_PER_CPU_SECOND "simulated_ios_per_cpu_second" "1/s" "" More "requests simulated in a second of \
            CPU time";
        CPU_TIME_PER_IO "cpu_time_per_io" "ns" "" Less "CPU time of a request";
        PASSES_BEFORE "passes_before" "" "" Neither "times that the range was overwritten until write amplification \
            was steady";
        PARSED_PER_CPU_SECOND "parsed_per_cpu_second" "MB/s" "" More "bytes of a trace read in a second of CPU time";
        FOLLOWED_PER_CPU_SECOND "followed_per_cpu_second" "1/s" "" More "requests of a trace whose reuse was \
            followed in a second of CPU time";
        LOOKUPS_PER_CPU_SECOND "lookups_per_cpu_second" "1/s" "" More "reads looked up in a cache of UBI in a second \
            of CPU time";
        CPU_TIME "cpu_time" "s" "" Less "CPU time of the whole work";
        CPU_TIME_PER_ITEM "cpu_time_per_item" "ns" "" Less "CPU time for each item found";
        START_CPU_TIME "start_cpu_time" "s" "" Less "CPU time to create and fill a device and have its host probe it";
        PROCESS_BYTES_PER_BLOCK "process_bytes_per_block" "bytes" "" Less "memory that this process may need at most \
            for each logical block of 4 KiB";
    }
}
