// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters, gauges and histograms as text: plain lines for people, Prometheus text 0.0.4, or OpenMetrics 1.0. It knows
//! no socket.

use crate::connections::{Counts, UnitCount};
use crate::lateness::Lateness;
use readpath_device::Probe;
use readpath_flash::DieSched;
use readpath_host::HpbCounters;
use readpath_kit::{Histogram, Ns};
use readpath_run::rules::RuleCount;
use readpath_stack::{Payload, Stack, Wire};
use std::fmt::{Display, Write as _};

/// A form of text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// Values only.
    Plain,
    Prometheus,
    OpenMetrics,
}

/// What OpenMetrics ends with.
pub(crate) const END: &str = "# EOF\n";

/// Upper ends of the buckets of histograms, in microseconds.
const ENDS_US: [u64; 17] = [
    10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000,
    10_000_000,
];

/// Metrics that are being written.
pub(crate) struct Metrics {
    text: String,
    form: Form,
}

impl Metrics {
    pub(crate) fn new(form: Form) -> Metrics {
        Metrics { text: String::new(), form }
    }

    /// The text, with its end.
    pub(crate) fn end(mut self) -> String {
        if self.form == Form::OpenMetrics {
            self.text += END;
        }
        self.text
    }

    /// Begins a metric. The samples of a counter end with `_total`; only OpenMetrics names it without.
    fn begin(&mut self, name: &str, kind: &str, help: &str) {
        let suffix = if kind == "counter" && self.form == Form::Prometheus { "_total" } else { "" };
        if self.form != Form::Plain {
            let _ = writeln!(self.text, "# HELP readpath_{name}{suffix} {help}");
            let _ = writeln!(self.text, "# TYPE readpath_{name}{suffix} {kind}");
        }
    }

    fn counters(&mut self, name: &str, help: &str, values: impl IntoIterator<Item = (String, u64)>) {
        self.begin(name, "counter", help);
        for (labels, value) in values {
            let _ = writeln!(self.text, "readpath_{name}_total{labels} {value}");
        }
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.counters(name, help, [(String::new(), value)]);
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.begin(name, "gauge", help);
        let _ = writeln!(self.text, "readpath_{name} {value}");
    }

    /// Times in seconds. Buckets of the histogram that lie across an end are counted above it.
    fn histogram(&mut self, name: &str, help: &str, of: &Histogram) {
        self.begin(name, "histogram", help);
        let mut buckets = of.buckets().peekable();
        let mut below = 0;
        for us in ENDS_US {
            while let Some((_, count)) = buckets.next_if(|&(top, _)| top <= us * 1000) {
                below += count;
            }
            let _ = writeln!(self.text, "readpath_{name}_bucket{{le=\"{:?}\"}} {below}", us as f64 / 1e6);
        }
        let _ = writeln!(
            self.text,
            "readpath_{name}_bucket{{le=\"+Inf\"}} {count}\nreadpath_{name}_sum {:?}\nreadpath_{name}_count {count}",
            of.sum() as f64 / 1e9,
            count = of.count()
        );
    }

    /// What the server has counted, with the number of requests in flight.
    pub(crate) fn server(&mut self, counts: &Counts, lateness: &Lateness, in_flight: u32) {
        let Counts { connections, turned_away, broken, read_bytes, written_bytes, errors, requests } = *counts;
        for (name, help, value) in [
            ("requests", "Requests that were answered.", requests),
            ("request_errors", "Requests that failed.", errors),
            ("read_bytes", "Bytes that clients read.", read_bytes),
            ("written_bytes", "Bytes that clients wrote.", written_bytes),
            ("connections", "Connections of clients.", connections),
            ("clients_turned_away", "Clients for which there was no room.", turned_away),
            ("clients_broken", "Clients that broke the protocol.", broken),
        ] {
            self.counter(name, help, value);
        }
        self.gauge("requests_in_flight", "Requests that have not been answered.", in_flight);
        for (name, help, of) in lateness.histograms() {
            self.histogram(name, help, of);
        }
    }

    /// What clients did with each logical unit, if there are several.
    pub(crate) fn units(&mut self, units: &[UnitCount]) {
        let of = |what: fn(&UnitCount) -> u64| {
            (0..).zip(units).map(move |(lun, unit): (u8, _)| (format!("{{unit=\"{lun}\"}}"), what(unit)))
        };
        if units.len() > 1 {
            self.counters("unit_requests", "Requests of a logical unit that were answered.", of(|unit| unit.requests));
            self.counters("unit_read_bytes", "Bytes read from a logical unit.", of(|unit| unit.read_bytes));
            self.counters("unit_written_bytes", "Bytes written to a logical unit.", of(|unit| unit.written_bytes));
        }
    }

    /// What rules have done.
    pub(crate) fn rules(&mut self, rules: &[RuleCount]) {
        let of = |what: fn(&RuleCount) -> u64| {
            let labels = |rule: &RuleCount| format!("{{rule=\"{}\",order=\"{}\"}}", rule.number, rule.rule);
            rules.iter().map(move |rule| (labels(rule), what(rule)))
        };
        if !rules.is_empty() {
            self.counters("rule_met", "Requests that a rule has met.", of(|rule| rule.met));
            self.counters("rule_acted", "Requests that a rule has acted on.", of(|rule| rule.done));
        }
    }

    /// Counters of host and device.
    pub(crate) fn stack<S: DieSched, X: Payload, P: Probe, W: Wire>(&mut self, stack: &Stack<S, X, P, W>, now: Ns) {
        let seconds = format!("{:?}", now.0 as f64 / 1e9);
        self.gauge("device_time_seconds", "Device time since the device was first switched on.", seconds);
        for (name, value) in stack.device.stats().by_name() {
            let help = format!("Device: {}.", name.replace('_', " "));
            self.counter(&format!("device_{name}"), &help, value);
        }
        let wear = stack.device.wear();
        self.gauge("device_erases_mean", "Erases of a superblock in the mean.", wear.mean);
        self.gauge("device_erases_max", "Erases of the superblock that has most.", wear.max);
        self.gauge("device_bad_blocks_now", "Blocks that are bad.", wear.bad_blocks);
        let unit = |lun| Some((lun, *stack.host.counters(lun)?, stack.host.memory(lun)?.map_bytes));
        self.hpb(&stack.host.luns().filter_map(unit).collect::<Vec<_>>());
    }

    /// Counters of HPB and bytes of maps, of logical units by their numbers.
    fn hpb(&mut self, units: &[(u8, HpbCounters, u64)]) {
        let sum = units.iter().map(|&(_, counters, _)| counters).reduce(|sum, unit| sum.plus(&unit));
        // Some counters have a name only where they are not 0.
        for (name, _) in sum.iter().flat_map(HpbCounters::by_name) {
            let help = format!("HPB of the host: {}.", name.replace('_', " "));
            let value = |of: &HpbCounters| of.by_name().find(|(known, _)| *known == name).map_or(0, |(_, value)| value);
            let values = units.iter().map(|(lun, counters, _)| (format!("{{lun=\"{lun}\"}}"), value(counters)));
            self.counters(&format!("hpb_{name}"), &help, values);
        }
        if !units.is_empty() {
            self.begin("hpb_map_bytes", "gauge", "Host memory of maps.");
        }
        for (lun, _, bytes) in units {
            let _ = writeln!(self.text, "readpath_hpb_map_bytes{{lun=\"{lun}\"}} {bytes}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(form: Form) -> String {
        let mut metrics = Metrics::new(form);
        let mut lateness = Lateness::default();
        lateness.add(Ns(150_000), Ns(7_000), Ns::ZERO, false);
        lateness.add(Ns(90_000), Ns(20_000_000_000), Ns::ZERO, false);
        metrics.server(&Counts { requests: 7, ..Counts::default() }, &lateness, 3);
        let rule = RuleCount { number: 2, rule: "slow read 1% 20ms".to_owned(), met: 9, done: 1 };
        metrics.rules(&[rule]);
        let unit = |requests| UnitCount { requests, ..UnitCount::default() };
        metrics.units(&[unit(3), unit(4)]);
        let hits = |hit_cnt, pre_req_cnt| HpbCounters { hit_cnt, pre_req_cnt, ..HpbCounters::default() };
        metrics.hpb(&[(0, hits(5, 0), 4096), (1, hits(6, 1), 8192)]);
        metrics.end()
    }

    #[test]
    fn forms_differ_in_names_of_counters_and_at_the_end() {
        let (plain, prometheus, open) = (written(Form::Plain), written(Form::Prometheus), written(Form::OpenMetrics));
        assert!(prometheus.starts_with(
            "# HELP readpath_requests_total Requests that were answered.\n# TYPE readpath_requests_total counter\n\
             readpath_requests_total 7\n"
        ));
        assert!(open.starts_with(
            "# HELP readpath_requests Requests that were answered.\n# TYPE readpath_requests counter\n\
             readpath_requests_total 7\n"
        ));
        assert!(open.ends_with("# EOF\n") && !prometheus.contains("EOF"));
        let samples = |text: &str| text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
        let [plain, prometheus, open]: [Vec<String>; 3] = [samples(&plain), samples(&prometheus), samples(&open)];
        assert_eq!((&plain, &plain), (&prometheus, &open));
        assert!(plain.contains(&"readpath_rule_met_total{rule=\"2\",order=\"slow read 1% 20ms\"} 9".to_owned()));
        assert!(plain.contains(&"readpath_requests_in_flight 3".to_owned()));
    }

    /// Every sample belongs to the metric that was announced last, and each metric is announced once.
    #[test]
    fn metrics_are_announced_before_their_samples() {
        for form in [Form::Prometheus, Form::OpenMetrics] {
            let text = written(form);
            let (mut name, mut kind, mut names) = ("", "", Vec::new());
            for line in text.lines().filter(|&line| line != "# EOF") {
                let words: Vec<&str> = line.splitn(4, ' ').collect();
                match words[..] {
                    ["#", "HELP", helped, _] => {
                        assert!(!names.contains(&helped), "{helped} is announced twice");
                        names.push(helped);
                        name = helped;
                    }
                    ["#", "TYPE", typed, of] => {
                        assert_eq!(typed, name);
                        kind = of;
                    }
                    _ => {
                        let sample = line.split(['{', ' ']).next().unwrap();
                        let suffixes: &[&str] = match (kind, form) {
                            ("histogram", _) => &["_bucket", "_sum", "_count"],
                            ("counter", Form::OpenMetrics) => &["_total"],
                            _ => &[""],
                        };
                        let is_of = |suffix: &&str| sample.strip_suffix(*suffix) == Some(name);
                        assert!(suffixes.iter().any(is_of), "{line} is not of {name}");
                    }
                }
            }
            assert!(names.len() > 10);
        }
    }

    #[test]
    fn buckets_add_up() {
        let text = written(Form::Plain);
        for line in [
            "readpath_request_modelled_seconds_bucket{le=\"5e-5\"} 0\n",
            "readpath_request_modelled_seconds_bucket{le=\"0.0001\"} 1\n",
            "readpath_request_modelled_seconds_bucket{le=\"0.0002\"} 2\n",
            "readpath_request_modelled_seconds_bucket{le=\"+Inf\"} 2\n",
            "readpath_request_modelled_seconds_sum 0.00024\n",
            "readpath_request_served_seconds_bucket{le=\"10.0\"} 1\n",
            "readpath_request_lateness_seconds_bucket{le=\"1e-5\"} 1\n",
            "readpath_request_lateness_seconds_count 2\n",
            "readpath_rule_acted_total{rule=\"2\",order=\"slow read 1% 20ms\"} 1\n",
            "readpath_unit_requests_total{unit=\"0\"} 3\nreadpath_unit_requests_total{unit=\"1\"} 4\n",
            "readpath_hpb_hit_cnt_total{lun=\"0\"} 5\nreadpath_hpb_hit_cnt_total{lun=\"1\"} 6\n",
            "readpath_hpb_pre_req_cnt_total{lun=\"0\"} 0\nreadpath_hpb_pre_req_cnt_total{lun=\"1\"} 1\n",
            "readpath_hpb_map_bytes{lun=\"0\"} 4096\nreadpath_hpb_map_bytes{lun=\"1\"} 8192\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
