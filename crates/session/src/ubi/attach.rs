// SPDX-License-Identifier: MIT OR Apache-2.0
//! The attach of an image: what UBI finds, and how long that takes on a NAND.

use super::bytes::ImageBytes;
use super::open::{ambiguity, not_attached, of_device, sized};
use super::own::digest;
use super::streams::cost;
use crate::args::UbiAttach;
use crate::cases::names;
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_lab::ubi::{CacheCase, CacheTexts, document};
use readpath_results::{Document, Note};
use readpath_ubi::attach::{Method, Options, PebCounts};
use readpath_ubi::cost::Cost;
use readpath_ubi::device::Volume;
use readpath_ubi::guess::Guess;
use readpath_ubi::mtd::{Image, Logged, Mtd};
use readpath_ubi::preset::CostPreset;
use readpath_ubi::stream::{Pressure, Setup, Stream, run};
use readpath_ubi::variant::Variant;
use readpath_ubi::{NoCache, Ubi};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::slice;

/// Chips with sub-page reads, and without.
const ATTACHED_BY: [&str; 2] = ["none", "nand-page"];

/// An attached image, with the cost of the reads of the attach.
pub struct Attached {
    /// The device.
    pub ubi: Ubi<Logged<Image<ImageBytes>>, NoCache>,
    image: PathBuf,
    guess: Guess,
    given_pebs: Option<u32>,
    /// Reads of the attach.
    pub reads: usize,
    /// Costs of single reads.
    pub cost: CostPreset,
    /// Cost of the attach on a chip with sub-page reads.
    pub with_subpage_reads: Cost,
    /// Cost of the attach on a chip that reads whole pages.
    pub without: Cost,
}

impl Attached {
    /// Attaches an image.
    ///
    /// # Errors
    /// When an option is wrong, or the image is not UBI.
    pub fn open(args: &UbiAttach) -> Result<Self> {
        let wrong = |e: &dyn std::fmt::Display| usage(anyhow!("{}: {e}", args.image.display()));
        let (file, guess) = sized(&args.image, &args.sizes)?;
        let given = args.cost.as_deref().map(cost).transpose()?;
        let image = Image::new(file, of_device(&guess, args.sizes.pebs)).map_err(|e| wrong(&e))?;
        let options = Options { vid_offset: guess.vid_offset, fastmap: !args.scan, ..Options::image() };
        let ubi =
            Ubi::attach(Logged::new(image), NoCache, &options).map_err(|e| not_attached(&args.image, &guess, &e))?;
        let (g, log) = (*ubi.mtd().geometry(), &ubi.mtd().records);
        let has_subpages = g.subpage_bytes < g.page_bytes;
        let cost = given.unwrap_or_else(|| CostPreset::for_pages(g.page_bytes, Some(has_subpages)));
        let stream = Stream::of_log(log, g.page_bytes);
        let [with_subpage_reads, without] = ATTACHED_BY.map(|cache| {
            let variant = Variant::parse(cache, 1).expect("the name of a cache");
            let setup = Setup { variant, costs: cost.model(g.page_bytes), pressure: &Pressure::default() };
            run(&stream.records, &setup).expect("no cache that knows the future").other.cost
        });
        let (reads, given_pebs) = (log.len(), args.sizes.pebs);
        Ok(Attached { ubi, image: args.image.clone(), guess, given_pebs, reads, cost, with_subpage_reads, without })
    }

    /// A warning, if the image is smaller than its volumes, as ubinize makes it, and no option names the size of the
    /// device.
    pub fn too_few_pebs(&self) -> Option<String> {
        let here = self.ubi.mtd().geometry().pebs;
        let needed = self.ubi.volumes().map(|v| u64::from(v.record.reserved_pebs)).sum::<u64>() + OVERHEAD_PEBS;
        (self.given_pebs.is_none() && needed > here.into()).then(|| {
            format!(
                "the volumes need a device of {needed} PEBs at least, the image has {here}: the attach of the device \
                 takes longer; --pebs N says how many it has"
            )
        })
    }

    /// A warning, if PEBs may be larger than `--peb-size`.
    pub fn larger_pebs(&self) -> Option<String> {
        let given = self.ubi.mtd().geometry().peb_bytes;
        self.guess.larger_peb_bytes.map(|larger| {
            format!(
                "--peb-size {given} may be too small: only each block at a multiple of {larger} bytes has an EC \
                 header, as if PEBs had that size"
            )
        })
    }

    /// The other page size that the headers allow.
    pub fn other_pages(&self) -> Option<String> {
        ambiguity(&self.guess)
    }

    /// States of erase blocks, and how many are in them.
    pub fn counts(&self) -> [(&'static str, u32); 6] {
        let counts = self.ubi.found().counts(self.ubi.mtd().geometry().pebs);
        let PebCounts { used, to_scrub, free, to_erase, kept, bad } = counts;
        [("used", used), ("to_scrub", to_scrub), ("free", free), ("to_erase", to_erase), ("kept", kept), ("bad", bad)]
    }

    /// How it was attached.
    pub fn method(&self) -> String {
        match self.ubi.found().method {
            Method::Scan => "scan".into(),
            Method::Fastmap { anchor } => format!("fastmap in PEB {anchor}"),
        }
    }

    /// Copies of the volume table that are damaged or older.
    pub fn rewrites(&self) -> Vec<usize> {
        let rewrite = self.ubi.found_table().rewrite.into_iter().enumerate();
        rewrite.filter(|&(_, rewrite)| rewrite).map(|(copy, _)| copy).collect()
    }

    /// The result document: the reads of the attach, on chips with and without sub-page reads.
    ///
    /// # Errors
    /// When the image cannot be read again.
    pub fn document(&self) -> Result<Document> {
        let page_bytes = self.ubi.mtd().geometry().page_bytes;
        let name = names(slice::from_ref(&self.image))?.remove(0);
        let stream = Stream::of_log(&self.ubi.mtd().records, page_bytes);
        let title = format!("Attach of {name}");
        let case = CacheCase { name, stream, notes: Vec::new(), input: digest(&self.image)? };
        let variants = ATTACHED_BY.map(|cache| Variant::parse(cache, 1).expect("the name of a cache"));
        let texts = CacheTexts { title, settings: self.json() };
        let costs = self.cost.model(page_bytes);
        let mut doc = document(&texts, &[case], &variants, &costs, &Pressure::default()).map_err(usage)?;
        let warnings = [self.too_few_pebs(), self.larger_pebs(), self.other_pages()];
        doc.notes.extend(warnings.into_iter().flatten().map(Note::remark));
        doc.remark(format!("Reads cost: {}.", self.cost.described(page_bytes)));
        Ok(doc)
    }

    /// The figures as JSON.
    pub fn json(&self) -> Value {
        let ubi = &self.ubi;
        let (g, found, layout) = (*ubi.mtd().geometry(), ubi.found(), ubi.layout());
        let Attached { reads, cost, with_subpage_reads: with, without, .. } = self;
        let volumes = ubi.volumes().map(|v| {
            json!({
                "id": v.id,
                "name": v.name(),
                "type": kind(v),
                "lebs": v.record.reserved_pebs,
                "mapped_lebs": v.mapped(),
                "leb_bytes": v.leb_bytes,
                "bytes": v.bytes(),
                "alignment": v.record.alignment,
                "remarks": remarks(v),
            })
        });
        json!({
            "device": {
                "pebs": g.pebs,
                "pebs_in_image": ubi.mtd().inner.present_pebs(),
                "peb_bytes": g.peb_bytes,
                "page_bytes": g.page_bytes,
                "subpage_bytes": g.subpage_bytes,
                "sizes_ambiguous": self.guess.ambiguous,
            },
            "layout": {
                "vid_offset": layout.vid_offset,
                "data_offset": layout.data_offset,
                "leb_bytes": layout.leb_bytes,
            },
            "peb_size_warning": self.larger_pebs(),
            "method": self.method(),
            "fastmap_fault": found.fastmap_fault,
            "image_sequence": found.image_seq,
            "highest_sequence_number": found.max_sqnum,
            "pebs": Value::from_iter(self.counts()),
            "erase_counter": { "min": found.min_ec, "mean": found.mean_ec, "max": found.max_ec },
            "attach": {
                "cost": cost.name,
                "cost_scaled": cost.page_bytes != g.page_bytes,
                "cost_cpu_known": cost.cpu_is_known,
                "reads": reads,
                "seconds": with.seconds(),
                "wait_seconds": with.wait_ns as f64 / 1e9,
                "cpu_seconds": with.cpu_ns as f64 / 1e9,
                "seconds_without_subpage_reads": without.seconds(),
            },
            "pebs_warning": self.too_few_pebs(),
            "volume_table_copies_to_rewrite": self.rewrites(),
            "volumes": volumes.collect::<Vec<_>>(),
        })
    }
}

/// Erase blocks that UBI has beside those of volumes: two with the volume table, one for moves, one for atomic changes.
const OVERHEAD_PEBS: u64 = 2 + 1 + 1;

/// The type of a volume.
pub fn kind(volume: &Volume) -> &'static str {
    if volume.record.vol_type == 2 { "static" } else { "dynamic" }
}

/// States of a volume that are not usual.
pub fn remarks(volume: &Volume) -> Vec<&'static str> {
    let flag = |set: bool, name| set.then_some(name);
    [
        flag(volume.record.flags & 1 != 0, "autoresize"),
        flag(volume.record.flags & 2 != 0, "skip-check"),
        flag(volume.record.update_marker, "update interrupted"),
        flag(volume.corrupted, "corrupted"),
    ]
    .into_iter()
    .flatten()
    .collect()
}
