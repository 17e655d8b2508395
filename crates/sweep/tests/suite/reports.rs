// SPDX-License-Identifier: MIT OR Apache-2.0
//! Documents of studies whose figures follow a known function of the settings.

use super::designs::design;
use super::plan;
use readpath_results::{Document, Metric, X, metric};
use readpath_sweep::{Folder, Found, Outcome, Plan, Record, Segment, document};
use tempfile::TempDir;

/// The document of a study in which a point's mean read latency is `latency` of its settings, each a number.
fn report(plan: &Plan, latency: impl Fn(&[f64]) -> f64) -> Document {
    report_of(plan, |x| vec![(LATENCY.to_owned(), latency(x))])
}

const LATENCY: &str = "read_latency_mean (us)";

/// The report of any figures.
fn report_of(plan: &Plan, figures: impl Fn(&[f64]) -> Vec<(String, f64)>) -> Document {
    let folder = TempDir::new().expect("a folder");
    let mut segment = Segment::create(folder.path(), "points", &plan.header()).expect("a segment");
    for index in 0..plan.count() {
        let point = plan.point(index);
        let settings = point.settings.iter().map(|s| s.plain()).collect();
        let outcome = Outcome::Figures(figures(&numbers(plan, index)));
        let record = Record { point: index, seed: Some(point.seed), settings, ios: 1, outcome };
        segment.append(&record.line()).expect("a record");
    }
    segment.finish().expect("a segment");
    let mut found = Found::of(&[Folder::new(folder.path())], Some(&plan.header())).expect("its own segment");
    let document = document(plan, &mut found).expect("a document");
    document.validate().expect("a valid document");
    document
}

/// The settings of a point.
fn numbers(plan: &Plan, index: u64) -> Vec<f64> {
    plan.point(index).settings.iter().map(|s| s.as_number().expect("a number")).collect()
}

/// A factor with these levels.
fn levels(key: &str, values: &str) -> String {
    format!("[[factor]]\nkey = \"{key}\"\nvalues = [{values}]\n")
}

/// Figures of each series of a chart.
fn drawn(document: &Document, id: &str) -> Vec<Vec<f64>> {
    let chart = document.charts.iter().find(|chart| chart.id == id).expect("the chart");
    chart.series.iter().map(|series| series.points.iter().map(|point| point.y).collect()).collect()
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
    // If all points have different settings, there is no column with their number.
    let plan = plan("[[factor]]\nkey = \"job.iodepth\"\nvalues = [1, 8]\n");
    assert_eq!(value(&report(&plan, |x| x[0]), "job.iodepth=1", "", &metric::POINTS), None);
}

/// Ishigami's function with a = 7 and b = 0.1; its indices are known exactly, as in Saltelli et al. (2008), page 179.
#[test]
fn sobol_indices_of_a_known_function_are_found() {
    let ishigami = |x: &[f64]| {
        let at = |i: usize| (x[i] - 1.5) * 2.0 * std::f64::consts::PI;
        at(0).sin() + 7.0 * at(1).sin().powi(2) + 0.1 * at(2).powi(4) * at(0).sin()
    };
    let keys = ["flash.read_us", "flash.transfer_4k_us", "link.request_us"];
    for second_order in [false, true] {
        let plan = design(&format!("kind = \"sobol\"\nsamples = 4096\nsecond_order = {second_order}"), 3);
        let document = report(&plan, ishigami);
        let figure = Metric::new("read_latency_mean", "us").label();
        // Indices, and halves of their intervals: 1.96 standard deviations over 120 draws of 4096 samples elsewhere.
        for (key, first, total) in [
            (keys[0], (31.39, 3.15), (55.76, 4.37)),
            (keys[1], (44.24, 2.43), (44.24, 2.07)),
            (keys[2], (0.0, 2.70), (24.37, 1.36)),
        ] {
            for (metric, error, (known, spread)) in [
                (metric::FIRST_ORDER, metric::FIRST_ORDER_ERROR, first),
                (metric::TOTAL_EFFECT, metric::TOTAL_EFFECT_ERROR, total),
            ] {
                let found = value(&document, &figure, key, &metric).expect("an index");
                let half = value(&document, &figure, key, &error).expect("its interval");
                assert!((found - known).abs() < 2.0, "{key}: {} is {found}, known: {known}", metric.name());
                assert!((half / spread - 1.0).abs() < 0.2, "{key}: {} ± {half}, known: ± {spread}", metric.name());
            }
        }
    }
}

/// The mean of log2(x) over each eighth of the range from 1 to 256 is the mean of its ends.
#[test]
fn parts_of_a_logarithmic_range_are_equal_ratios() {
    let factor = "[[factor]]\nkey = \"flash.read_us\"\nfrom = 1.0\nto = 256.0\nscale = \"log\"\nmultiple_of = 0.001\n";
    let plan = plan(&format!("[design]\nkind = \"latin-hypercube\"\nsamples = 512\n{factor}"));
    let document = report(&plan, |x| x[0].log2());
    let chart = document.charts.iter().find(|chart| chart.id == "effect_0_0").expect("a chart of the factor");
    assert_eq!((chart.series[0].points.len(), chart.x_log), (8, true));
    for (part, point) in chart.series[0].points.iter().enumerate() {
        let middle = part as f64 + 0.5;
        let X::Number(x) = point.x else { panic!("{:?} is a number", point.x) };
        assert!((x.log2() - middle).abs() < 0.01 && (point.y - middle).abs() < 0.03, "{part}: {point:?}");
    }
}

/// Five levels of a third factor would be five maps.
#[test]
fn a_map_of_many_factors_has_means() {
    let factors = levels("flash.read_us", "1.0, 2.0") + &levels("link.request_us", "1.0, 2.0");
    let plan = plan(&(factors + &levels("flash.transfer_4k_us", "1.0, 2.0, 3.0, 4.0, 5.0")));
    let document = report(&plan, |x| 100.0 * x[0] + 10.0 * x[1] + x[2]);
    assert_eq!(drawn(&document, "map_0_0"), [[113.0, 213.0], [123.0, 223.0]]);
}

/// 8 us with 1 MiB, 6 us with 2 MiB and 7 us with 3 MiB.
#[test]
fn less_latency_is_worth_more_memory() {
    let plan = plan(&levels("flash.read_us", "1.0, 2.0, 3.0"));
    let document = report_of(&plan, |x| {
        let memory = x[0] * f64::from(1 << 20);
        vec![(LATENCY.to_owned(), [8.0, 6.0, 7.0][x[0] as usize - 1]), ("host_memory (bytes)".to_owned(), memory)]
    });
    assert_eq!(drawn(&document, "front_0"), [[8.0, 6.0]]);
}

/// The slope is 3, and a step of half of the 4 levels over a range of 1 is 2/3: an effect of 2.
#[test]
fn effects_of_trajectories_are_in_percent_of_the_mean() {
    let plan = design("kind = \"morris\"\ntrajectories = 8\nlevels = 4", 2);
    let latency = |x: &[f64]| 10.0 + 3.0 * x[0];
    let mean = (0..plan.count()).map(|i| latency(&numbers(&plan, i))).sum::<f64>() / plan.count() as f64;
    let document = report(&plan, latency);
    let figure = Metric::new("read_latency_mean", "us").label();
    let of = |key, metric| value(&document, &figure, key, &metric).expect("an effect");
    let (large, none) = (of("flash.read_us", metric::MEAN_EFFECT), of("flash.transfer_4k_us", metric::MEAN_EFFECT));
    assert!((large - 200.0 / mean).abs() < 0.1 && none == 0.0, "{large} and {none}, of {mean}");
    assert!(of("flash.read_us", metric::EFFECT_SPREAD) < 0.1);
}

#[test]
fn a_figure_that_a_point_lacks_is_not_shown() {
    let plan = plan(&levels("flash.read_us", "1.0, 2.0, 3.0"));
    let document = report_of(&plan, |x| {
        let all = [(LATENCY.to_owned(), x[0]), ("start_up_time (ms)".to_owned(), x[0])];
        all.into_iter().take(if x[0] < 3.0 { 2 } else { 1 }).collect()
    });
    assert!(document.rows.iter().all(|row| row.metric.name() == "read_latency_mean") && document.rows.len() == 3);
}

/// A page shows at most two thousand points of a line, and a study may have more.
#[test]
fn of_many_levels_some_are_drawn() {
    let fine = |key: &str| format!("[[factor]]\nkey = \"{key}\"\nfrom = 1.0\nto = 50.0\nsteps = 2501\n");
    let one = report(&plan(&fine("flash.read_us")), |x| x[0]);
    let line = &drawn(&one, "lines_0")[0];
    assert_eq!(line.len(), 835, "every third, and the last");
    assert_eq!((line[0], line[834]), (1.0, 50.0));
    assert_eq!(one.charts[0].caption, "One point of 3 is drawn.");

    let two = format!("{}{}", fine("flash.read_us"), levels("job.iodepth", "1, 2, 3, 4, 5, 6, 7, 8, 9"));
    let two = report(&plan(&two.replace("2501", "1102")), |x| x[0]);
    let effect = &drawn(&two, "effect_0_0")[0];
    assert_eq!((effect.len(), effect[551]), (552, 50.0), "every second, and the last");
    let caption = &two.charts.iter().find(|chart| chart.id == "effect_0_0").expect("the chart").caption;
    assert!(caption.ends_with("whatever the other factors are. One point of 2 is drawn."), "{caption}");
}
