// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of a result: its document and its page.

use crate::files::{NewFolder, begin_whole, check_not_input, check_writable};
use anyhow::Result;
use readpath_report::html;
use readpath_results::Document;
use std::path::{Path, PathBuf};

/// The folder of `result.json` and `report.html`. If they are not written, a folder that was made for them is removed.
pub struct Folder {
    json: PathBuf,
    page: PathBuf,
    _made: NewFolder,
}

impl Folder {
    /// Makes the folder if it does not exist, and checks that both files can be written: before a run that may take an
    /// hour.
    ///
    /// # Errors
    /// When one of them cannot.
    pub fn create(folder: &Path) -> Result<Self> {
        let made = NewFolder::create(folder)?;
        let (json, page) = (folder.join("result.json"), folder.join("report.html"));
        check_writable(&json)?;
        check_writable(&page)?;
        Ok(Folder { json, page, _made: made })
    }

    /// Refuses to replace one of `inputs` by either file.
    ///
    /// # Errors
    /// When a file is one of `inputs`.
    pub fn apart_from<'a>(
        self,
        inputs: impl IntoIterator<Item = &'a (impl AsRef<Path> + ?Sized + 'a)>,
    ) -> Result<Self> {
        for input in inputs {
            check_not_input(&self.json, input.as_ref())?;
            check_not_input(&self.page, input.as_ref())?;
        }
        Ok(self)
    }

    /// Writes both files.
    ///
    /// # Errors
    /// When one cannot be made or written; then neither takes its name.
    pub fn write(self, doc: &Document) -> Result<()> {
        let (json, page) = (doc.to_json_pretty()?, html::page(doc)?);
        let files = [(&self.json, json), (&self.page, page)].map(|(path, text)| begin_whole(path, text.as_bytes()));
        // Neither takes its name before both parts are written.
        let [json, page] = files;
        let (json, page) = (json?, page?);
        json.finish()?;
        page.finish()
    }
}
