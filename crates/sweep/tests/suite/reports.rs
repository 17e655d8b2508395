// SPDX-License-Identifier: MIT OR Apache-2.0
//! Documents of studies whose figures follow a known function of the settings.

use super::plan;
use readpath_results::{Document, Metric, metric};
use readpath_sweep::{Folder, Found, Outcome, Plan, Record, Segment, document};
use tempfile::TempDir;

/// The document of a study in which a point's mean read latency is `latency` of its settings, each a number.
fn report(plan: &Plan, latency: impl Fn(&[f64]) -> f64) -> Document {
    let folder = TempDir::new().expect("a folder");
    let mut segment = Segment::create(folder.path(), "points", &plan.header()).expect("a segment");
    for index in 0..plan.count() {
        let point = plan.point(index);
        let numbers: Vec<f64> = point.settings.iter().map(|s| s.as_number().expect("a number")).collect();
        let figures = vec![("read_latency_mean (us)".to_owned(), latency(&numbers))];
        let settings = point.settings.iter().map(|s| s.plain()).collect();
        let record = Record { point: index, seed: point.seed, settings, ios: 1, outcome: Outcome::Figures(figures) };
        segment.append(&record).expect("a record");
    }
    segment.finish().expect("a segment");
    let mut found = Found::of(&[Folder::new(folder.path())], Some(&plan.header())).expect("its own segment");
    let document = document(plan, &mut found).expect("a document");
    document.validate().expect("a valid document");
    document
}

fn value(document: &Document, case: &str, variant: &str, metric: &Metric) -> Option<f64> {
    document.find(case, variant, metric).map(|row| row.simulated)
}

/// Equal settings have equal seeds, so equal figures.
#[test]
fn points_with_equal_settings_have_one_row_that_counts_them() {
    let depth = "[[factor]]\nkey = \"job.iodepth\"\nfrom = 1\nto = 8\n";
    for (design, points, settings) in [
        ("kind = \"latin-hypercube\"\nsamples = 40", 40, 8),
        ("kind = \"morris\"\ntrajectories = 10\nlevels = 4", 20, 4),
        ("kind = \"sobol\"\nsamples = 1", 4, 2),
    ] {
        let plan = plan(&format!("[design]\n{design}\n{depth}"));
        let document = report(&plan, |x| 100.0 / x[0]);
        let rows = document.rows.iter().filter(|row| row.case.starts_with("job.iodepth="));
        let (mut counted, mut latencies) = (0.0, 0);
        for row in rows {
            match row.metric.name() {
                "points" => counted += row.simulated,
                _ => {
                    latencies += 1;
                    let depth: f64 = row.case.rsplit('=').next().and_then(|n| n.parse().ok()).expect("a depth");
                    assert_eq!(row.simulated, 100.0 / depth);
                }
            }
        }
        assert_eq!((counted, latencies), (f64::from(points), settings), "{design}");
    }
    // Where all points differ there is nothing to count.
    let plan = plan("[[factor]]\nkey = \"job.iodepth\"\nvalues = [1, 8]\n");
    assert_eq!(value(&report(&plan, |x| x[0]), "job.iodepth=1", "", &metric::POINTS), None);
}
