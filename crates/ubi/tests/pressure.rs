// SPDX-License-Identifier: MIT OR Apache-2.0
//! A budget of memory holds for lines and for what is kept beside them.

use readpath_ubi::preset::CostPreset;
use readpath_ubi::stream::{Geometry, Limits, Pressure, Setup, Step, load, run};
use readpath_ubi::variant::Variant;

#[test]
fn tables_are_paid_for_before_lines() {
    let text: String = (0..200).map(|i| format!("r,1,{},64,0,a\n", i % 40 * 2048)).collect();
    let geometry = Geometry { page_bytes: 2048, peb_bytes: None };
    let stream = load("s.csv", &mut text.as_bytes(), geometry, false, Limits::default()).expect("a stream");
    let costs = CostPreset::builtin("mlc-16k").expect("it").model(2048);
    for name in ["lru", "2q", "arc", "clock", "set-assoc"] {
        let variant = Variant::parse(name, 32).unwrap_or_else(|e| panic!("{name}: {e}"));
        let with = |steps: Vec<Step>| run(&stream.records, &Setup { variant, costs, pressure: &Pressure { steps } });
        let tables = with(Vec::new()).metadata_bytes;
        assert!(tables > 0, "{name}");
        for (bytes, lines) in [(tables + 3 * 2048, 3), (tables + 3 * 2048 - 1, 2), (tables, 0), (tables - 1, 0), (0, 0)]
        {
            let outcome = with(vec![Step { read: 0, bytes }]);
            assert!(outcome.resident_most <= lines, "{name}: {} lines for {bytes} bytes", outcome.resident_most);
        }
        if name == "lru" {
            assert_eq!(with(vec![Step { read: 0, bytes: tables + 3 * 2048 }]).resident_most, 3);
        }
    }
}
