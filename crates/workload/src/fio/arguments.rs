// SPDX-License-Identifier: MIT OR Apache-2.0
//! A job given as options of a command line, made into the text of a job file (fio HOWTO, "Command line
//! options"). Knows no option but `--name`.

/// Options of fio's command line that do not belong to a job (`fio --help`), and what serves their purpose here.
const OF_COMMAND: [(&str, &str); 8] = [
    ("output", "give --output=FILE of this program, before the --"),
    ("output-format", "give --output-format=json, json+ or normal of this program, before the --"),
    (
        "minimal append-terse terse-version",
        "there is no terse output; --output-format=json or --csv, before the --, helps",
    ),
    ("parse-only showcmd", "give --dry-run before the --: it checks the job and makes no run"),
    ("section", "leave the other jobs out of the file"),
    ("cmdhelp enghelp help version", "the page of fio's options in the book says what is simulated"),
    (
        "client daemonize remote-config server trigger trigger-file trigger-remote trigger-timeout",
        "runs of this program need no second machine; leave it out",
    ),
    ("cpuclock-test crctest inflate-log merge-blktrace-only", "it makes no job; leave it out"),
];

/// Options of fio's command line that say how it runs and shows progress: nothing here depends on them.
const IGNORED: &str = "alloc-size aux-path bandwidth-log debug eta eta-interval eta-newline idle-prof max-jobs \
                       readonly status-interval warnings-fatal";

/// An error of the options as a command line; errors of a job are found when its text is parsed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ArgumentError {
    /// A job file has no way to write it.
    #[error("--{0}: has a ; or # in its value, where a comment begins in a job file")]
    Comment(String),
    /// It says how fio itself runs.
    #[error("--{0}: is an option of the program fio, not of a job; {1}")]
    OfCommand(String, &'static str),
    /// An argument is not `--option`, `--option=value` or `--option value`.
    #[error("{0}: is not an option of a job; write --option=value")]
    NotAnOption(String),
    /// A job file is one line for each option.
    #[error("--{0}: has a line break in its value; a job file takes it")]
    LineBreak(String),
    /// A job file has its own jobs.
    #[error("--name: begins a job, but the job file has its own; leave --name out, or the file")]
    BesideFile,
    /// Nothing begins a job.
    #[error("--name=NAME is missing: as in fio, it begins a job, and options before the first are for all jobs")]
    NoName,
}

/// A job as typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Typed {
    /// The name of the first job.
    pub name: String,
    /// The job file.
    pub text: String,
}

/// Makes the text of a job file of the options behind `fio`. As in fio, `--name` begins a job, and options before the
/// first are for all jobs.
///
/// # Errors
/// See [`ArgumentError`].
pub fn of_arguments(arguments: &[String]) -> Result<Typed, ArgumentError> {
    let (name, text) = text_of(arguments)?;
    Ok(Typed { name: name.ok_or(ArgumentError::NoName)?, text })
}

/// Makes a section of defaults of the options behind `fio JOB.fio`, which fio takes before those of the file.
///
/// # Errors
/// See [`ArgumentError`].
pub fn defaults(arguments: &[String]) -> Result<String, ArgumentError> {
    match text_of(arguments)? {
        (None, text) => Ok(text),
        (Some(_), _) => Err(ArgumentError::BesideFile),
    }
}

/// The name of the first job, if there is one, and the text.
fn text_of(arguments: &[String]) -> Result<(Option<String>, String), ArgumentError> {
    let (mut first, mut text) = (None, "[global]\n".to_owned());
    let mut rest = arguments.iter().peekable();
    while let Some(argument) = rest.next() {
        let Some(option) = option(argument) else {
            return Err(ArgumentError::NotAnOption(argument.clone()));
        };
        let (key, value) = match option.split_once('=') {
            Some((key, value)) => (key, Some(value.to_owned())),
            None => (option, rest.next_if(|next| self::option(next).is_none()).cloned()),
        };
        let is_in = |names: &str| names.split_whitespace().any(|name| name == key);
        if let Some((_, instead)) = OF_COMMAND.iter().find(|(names, _)| is_in(names)) {
            return Err(ArgumentError::OfCommand(key.to_owned(), instead));
        }
        if is_in(IGNORED) {
            continue;
        }
        if argument.contains('\n') || value.as_ref().is_some_and(|value| value.contains('\n')) {
            return Err(ArgumentError::LineBreak(key.to_owned()));
        }
        if argument.contains([';', '#']) || value.as_ref().is_some_and(|value| value.contains([';', '#'])) {
            return Err(ArgumentError::Comment(key.to_owned()));
        }
        match (key, value) {
            ("name", Some(name)) if !name.is_empty() => {
                text += &format!("[{name}]\n");
                first.get_or_insert(name);
            }
            ("name", _) => return Err(ArgumentError::NoName),
            (key, Some(value)) => text += &format!("{key}={value}\n"),
            (key, None) => text += &format!("{key}\n"),
        }
    }
    Ok((first, text))
}

/// The option behind one or two dashes, as in fio. A negative number is not an option.
fn option(argument: &str) -> Option<&str> {
    let rest = argument.strip_prefix('-')?;
    let option = rest.strip_prefix('-').unwrap_or(rest);
    option.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_').then_some(option)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Typed, ArgumentError> {
        of_arguments(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_command_line_is_a_job_file() {
        let typed = of("--direct=1 --name=a --rw randread --time_based --runtime=5 --name b --rw=write").unwrap();
        assert_eq!(typed.name, "a");
        assert_eq!(typed.text, "[global]\ndirect=1\n[a]\nrw=randread\ntime_based\nruntime=5\n[b]\nrw=write\n");
        assert_eq!(of("-nice -5 -name=a -rw read").unwrap().text, "[global]\nnice=-5\n[a]\nrw=read\n");
    }

    #[test]
    fn options_beside_a_file_are_defaults() {
        let of = |line: &str| defaults(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(of("--size=1g --eta=never -direct 1 --readonly"), Ok("[global]\nsize=1g\ndirect=1\n".into()));
        assert_eq!(of("--size=1g --name=a"), Err(ArgumentError::BesideFile));
    }

    #[test]
    fn what_is_none() {
        assert_eq!(of("--name=a job.fio"), Err(ArgumentError::NotAnOption("job.fio".into())));
        let format = of("--name=a --output-format json").unwrap_err().to_string();
        assert_eq!(
            format,
            "--output-format: is an option of the program fio, not of a job; give --output-format=json, json+ or \
             normal of this program, before the --"
        );
        assert_eq!(of("--name=a --"), Err(ArgumentError::NotAnOption("--".into())));
        assert_eq!(of("--rw=read"), Err(ArgumentError::NoName));
        assert_eq!(of("--name= --rw=read"), Err(ArgumentError::NoName));
        assert_eq!(of("--name=a --filename=/data/a;b"), Err(ArgumentError::Comment("filename".into())));
        assert_eq!(of("--name=a --rw=read\n[b]"), Err(ArgumentError::LineBreak("rw".into())));
    }
}
