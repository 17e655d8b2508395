// SPDX-License-Identifier: MIT OR Apache-2.0
//! How `--help` is arranged: options of commands with many of them have headings, and `-h` leaves out the rare ones.

use clap::{Arg, Command};

/// Commands with more options than these have headings.
const FEW: usize = 12;

/// Headings, and the options below each.
const HEADINGS: &[(&str, &str)] = &[
    ("Variants", "hpb policy vary host-memory base"),
    (
        "Traces",
        "format columns object-bytes ufs-block-bytes lenient trace-device merge-devices units iodepth speed max-idle \
         fold spread-ties shift-sectors precondition pressure image",
    ),
    ("Runs", "case variant seed seeds threads keep shard dry-run"),
    ("Output", "json csv out output output-format"),
    ("Live counters and single requests", "stats sysfs hold trace-io trace-io-from trace-io-limit"),
    ("Developers", "wire"),
];

/// Options that `-h` leaves out where there are headings.
const RARE: &str = "format speed csv dry-run precondition columns object-bytes ufs-block-bytes lenient trace-device \
                    merge-devices units max-idle shift-sectors pressure events \
                    image case variant seed threads keep shard stats sysfs hold trace-io \
                    trace-io-from trace-io-limit wire pebs boot-list host-memory";

/// The command line with headings.
pub fn arranged(command: Command) -> Command {
    let many = command.get_arguments().filter_map(Arg::get_long).count() > FEW;
    let command = if many { command.mut_args(placed) } else { command };
    command.mut_subcommands(arranged)
}

fn placed(arg: Arg) -> Arg {
    let Some(name) = arg.get_long().map(str::to_owned) else { return arg };
    let is_in = |names: &str| names.split(' ').any(|other| other == name);
    let arg = if is_in(RARE) { arg.hide_short_help(true) } else { arg };
    match HEADINGS.iter().find(|(_, options)| is_in(options)) {
        Some((heading, _)) => arg.help_heading(*heading),
        None => arg,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command;

    fn of(path: &str) -> Command {
        let mut all = command().term_width(100);
        all.build();
        path.split(' ')
            .skip(1)
            .fold(all, |c, name| c.find_subcommand(name).cloned().unwrap_or_else(|| panic!("{path}")))
    }

    #[test]
    fn short_help_fits_one_screen() {
        for path in [
            "readpath",
            "readpath fio",
            "readpath replay",
            "readpath compare",
            "readpath ubi replay",
            "readpath serve",
            "readpath power",
            "readpath reproduce",
            "readpath break-even",
            "readpath iozone",
        ] {
            let help = of(path).render_help().to_string();
            assert!(help.lines().count() <= 40, "{path}: {} lines\n{help}", help.lines().count());
        }
    }

    #[test]
    fn options_of_the_tables_are_options() {
        fn options(command: &Command) -> Vec<&str> {
            let below = command.get_subcommands().flat_map(options);
            command.get_arguments().filter_map(Arg::get_long).chain(below).collect()
        }
        let all = of("readpath");
        let all = options(&all);
        let named = HEADINGS.iter().flat_map(|(_, names)| names.split(' ')).chain(RARE.split(' '));
        assert_eq!(named.filter(|name| !all.contains(name)).collect::<Vec<_>>(), Vec::<&str>::new());
        let long = of("readpath replay").render_long_help().to_string();
        assert!(long.contains("\nTraces:\n") && long.contains("--wire"), "{long}");
    }
}
