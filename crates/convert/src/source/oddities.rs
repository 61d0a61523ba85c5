//! Collects problems that are found while a folder is walked, and turns them into warnings.

use super::tally::Tally;
use super::unread::UnreadFiles;
use super::warning::Warning;

/// Problems found while walking a folder.
#[derive(Debug, Clone, Default)]
pub(super) struct Oddities {
    pub(super) broken_links: Tally,
    pub(super) special_files: Tally,
    pub(super) system_folders: Tally,
    pub(super) backup_files: Tally,
    pub(super) unread: UnreadFiles,
    pub(super) unreadable_files: Tally,
}

impl Oddities {
    pub(super) fn append(&mut self, other: Self) {
        self.broken_links.append(other.broken_links);
        self.special_files.append(other.special_files);
        self.system_folders.append(other.system_folders);
        self.backup_files.append(other.backup_files);
        self.unread.append(other.unread);
        self.unreadable_files.append(other.unreadable_files);
    }

    pub(super) fn into_warnings(self) -> Vec<Warning> {
        let warnings = [
            self.broken_links.warning(|count, first| Warning::BrokenLinks { count, first }),
            self.special_files.warning(|count, first| Warning::SpecialFiles { count, first }),
            self.system_folders.warning(|count, first| Warning::SystemFolders { count, first }),
            self.backup_files.warning(|count, first| Warning::BackupFiles { count, first }),
            self.unreadable_files.warning(|count, first| Warning::UnreadableFiles { count, first }),
        ];
        warnings.into_iter().flatten().chain(self.unread.into_warnings()).collect()
    }
}
