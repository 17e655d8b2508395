// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of all questions.

use crate::inputs;
use clap::Args;
use readpath_lab::compare::Read;
use readpath_sweep::Shard;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Device keys, threads, and texts that are given instead of files.
#[derive(Args, Clone, Default, Debug)]
pub struct Making {
    /// Change a key of the device file for this run; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Runs to simulate in parallel [default: one per processor]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: Option<u32>,
    /// Keep what each run shows in a folder: the same command goes on from there, and processes can share the runs
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Make every Nth run only, beginning with the Ith: for a batch system, whose jobs have I from 1 to N
    #[arg(long, value_name = "I/N", requires = "keep")]
    pub shard: Option<Shard>,
    /// Texts that were given or read.
    #[arg(skip)]
    pub texts: Texts,
}

/// Texts by the paths of their files: given ones, and those that were read. Clones share them.
#[derive(Clone, Default, Debug)]
pub struct Texts(Arc<Mutex<HashMap<PathBuf, String>>>);

impl Texts {
    /// Gives a text instead of a file.
    pub fn give(&self, path: PathBuf, text: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path, text);
    }

    /// All of them, by path.
    pub fn all(&self) -> Vec<(PathBuf, String)> {
        let mut all: Vec<_> = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone().into_iter().collect();
        all.sort();
        all
    }

    fn get(&self, path: &Path) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }
}

impl Making {
    /// Reads a text: one that is given, or a file.
    ///
    /// # Errors
    /// As [`inputs::read_text`].
    pub fn read(&self, path: &Path) -> io::Result<String> {
        if let Some(text) = self.texts.get(path) {
            return Ok(text);
        }
        let text = inputs::read_text(path)?;
        self.texts.give(path.to_owned(), text.clone());
        Ok(text)
    }

    /// [`Making::read`], with an error that names the file.
    ///
    /// # Errors
    /// As [`inputs::text`].
    pub fn text(&self, path: &Path) -> anyhow::Result<String> {
        self.texts.get(path).map_or_else(|| inputs::text(path), Ok)
    }

    /// [`Making::read`] as a function.
    pub fn reader(&self) -> Read {
        let making = self.clone();
        Arc::new(move |path| making.read(path))
    }
}

/// Which runs are made, and how.
#[derive(Args, Clone, Default, Debug)]
pub struct Chosen {
    /// Encode every request and reply as a UPIU and parse it again: slower, same results
    #[arg(long)]
    pub wire: bool,
    /// Run only this case
    #[arg(long, value_name = "NAME")]
    pub case: Option<String>,
    /// Run only this variant
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
}

impl Chosen {
    /// Whether all runs are made.
    pub fn is_whole(&self) -> bool {
        self.case.is_none() && self.variant.is_none()
    }
}
