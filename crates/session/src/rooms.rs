// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the program and the Python package take from the crates below, by subject.

/// Devices, and their images.
pub mod device {
    pub use readpath_device::{ANCHORS, FlashArray, Layout, Protocol, Recovery, ZoneConfig};
    pub use readpath_kit::Ns;
    pub use readpath_proto::rpmb;
    pub use readpath_stack::given_host_memory;
}

/// Files of devices, experiments and studies.
pub mod config {
    pub use readpath_config::{
        Builtin, DevicePreset, GivenKey, device, experiment, experiments, presets, size, study, time,
    };
}

/// Traces.
pub mod workload {
    pub use readpath_workload::{IoKind, experts, trace};
}

/// Runs in progress.
pub mod running {
    pub use readpath_run::{Board, Post, TRACE_IO_LIMIT, Tap, TapFrom, TapTo, UpiuText, sram};
}

/// Questions and their answers.
pub mod lab {
    pub use readpath_lab::{
        bench, builtin, experiment, fit, map_gain, map_reuse, parity, probe, question, replay, runs, trace_info, ubi,
    };
}

/// Result documents.
pub mod results {
    pub use readpath_results::{Document, Input, Metric, Note, NoteKind, Origin, Process, Row, csv_cell, metric};
}

/// Points of studies.
pub mod study {
    pub use readpath_sweep::{
        Folder, Found, Made, Maker, OfPlan, Plan, Record, Segment, Shard, document, merge, unfinished, work,
    };
}
