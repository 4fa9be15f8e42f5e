//! The thread that saves a run, so that rank 0 forwards messages meanwhile.

use super::save::{Save, Saved};
use crate::cluster::record::DrawBlock;
use crate::results::write::{RunWriter, bytes_of};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;
use std::time::Instant;

/// The thread, which has the writer of the result file, and the draws for its next save. It carries out one save at a time; when this value is
/// dropped, the save in progress is completed first.
pub(super) struct Saver {
    /// None once the thread shall end.
    saves: Option<Sender<Save>>,
    saved: Receiver<Saved>,
    thread: Option<JoinHandle<()>>,
    /// When the save in progress began.
    began: Option<Instant>,
    draws: Vec<DrawBlock>,
    /// The bytes of these draws.
    bytes: usize,
    /// The bytes of draws that the thread has: they are being saved, or could not be saved.
    bytes_handed_over: usize,
}

impl Saver {
    /// # Errors
    /// If the system has no thread to give.
    pub fn start(mut writer: RunWriter) -> io::Result<Self> {
        let (saves, to_save) = bounded::<Save>(1);
        let (done, saved) = bounded(1);
        let work = move || {
            for save in to_save {
                let since = Instant::now();
                let saved = catch_unwind(AssertUnwindSafe(|| save.carry_out(&mut writer)));
                // After a panic the run ends.
                drop(done.send(saved.unwrap_or_else(|panic| Saved::panicked(panic.as_ref(), since))));
            }
        };
        let thread = std::thread::Builder::new().name("saving".into()).spawn(work)?;
        let (saves, thread) = (Some(saves), Some(thread));
        Ok(Self { saves, saved, thread, began: None, draws: Vec::new(), bytes: 0, bytes_handed_over: 0 })
    }

    /// Adds draws to the next save.
    pub fn push(&mut self, draws: DrawBlock) {
        self.bytes += bytes_of(&draws);
        self.draws.push(draws);
    }

    /// The bytes of draws that are in memory.
    pub fn pending(&self) -> usize {
        self.bytes + self.bytes_handed_over
    }

    /// When the save began of which [`Saver::poll`] or [`Saver::wait`] has not returned what came of it.
    pub fn began(&self) -> Option<Instant> {
        self.began
    }

    /// Begins a save, with all draws so far. No other may be in progress.
    pub fn begin(&mut self, mut save: Save) {
        save.draws = std::mem::take(&mut self.draws);
        self.bytes_handed_over += std::mem::take(&mut self.bytes);
        // The thread waits for saves as long as this value lives.
        let is_sent = self.saves.as_ref().is_some_and(|saves| saves.send(save).is_ok());
        self.began = is_sent.then(Instant::now);
    }

    /// What came of the save in progress, if it is over.
    pub fn poll(&mut self) -> Option<Saved> {
        self.began?;
        let saved = self.saved.try_recv().ok();
        saved.map(|saved| self.note(saved))
    }

    /// The same, after waiting for it.
    pub fn wait(&mut self) -> Option<Saved> {
        self.began?;
        let saved = self.saved.recv().ok();
        saved.map(|saved| self.note(saved))
    }

    fn note(&mut self, saved: Saved) -> Saved {
        self.began = None;
        self.bytes_handed_over = saved.unwritten_bytes;
        saved
    }
}

impl Drop for Saver {
    fn drop(&mut self) {
        self.saves = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
