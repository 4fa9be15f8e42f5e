//! What ends a job: which rank and agent, what it was doing, and why; panics and calls of `exit` included.

use super::layout::Rank;
use super::method::{AgentId, BoxError};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// The exit code of a job that a fault ended.
pub const EXIT_CODE: i32 = 70;

/// A failure that ends the whole job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("rank {rank}, {who}, {doing}: {cause}")]
pub struct Fault {
    /// Where it happened.
    pub rank: Rank,
    /// The agent or the server.
    pub who: String,
    /// What it was doing.
    pub doing: String,
    /// What the method, the panic or the system said.
    pub cause: String,
}

impl Fault {
    /// Prints the message of a failed job, at one stroke: written in pieces, mpirun's own lines would come between them.
    pub(super) fn say(&self) {
        // Nobody is left to tell that the error output is closed.
        drop(std::io::stderr().write_all(format!("mpibayes: {self}\n").as_bytes()));
    }

    /// Prints the message and ends the process at once with [`EXIT_CODE`]: an ordinary exit would take the libraries away under
    /// worker threads that are still in the middle of a matrix product.
    pub fn end_process(&self) -> ! {
        self.say();
        end_process(EXIT_CODE)
    }
}

/// Ends a process in which a run has failed and others were done since, for the reason of [`Fault::end_process`].
pub fn end_process(code: i32) -> ! {
    // SAFETY: ends the process without running any handler.
    unsafe { libc::_exit(code) }
}

/// What a thread is doing for a method; `Copy`, because the exit handler reads it when destructors have run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doing {
    pub method: &'static str,
    pub rank: Rank,
    pub agent: Option<AgentId>,
    pub what: What,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Making,
    Starting,
    Receiving,
    Posting,
    Performing(u64),
    Settling,
    Saving,
    Keeping,
    Talking,
}

impl Doing {
    pub(super) fn fault(self, cause: impl Into<String>) -> Fault {
        let doing = match self.what {
            What::Making => "being made".into(),
            What::Starting => "starting".into(),
            What::Receiving => "receiving a response".into(),
            What::Posting => "posting a request".into(),
            What::Performing(request) => format!("performing a task (request {request})"),
            What::Settling => "settling".into(),
            What::Saving => "giving its state".into(),
            What::Keeping => "having the run written down".into(),
            What::Talking => "passing messages on".into(),
        };
        Fault {
            rank: self.rank,
            who: self.agent.map_or_else(|| "server".into(), |agent| format!("agent {agent}")),
            doing: format!("{} {doing}", self.method),
            cause: cause.into(),
        }
    }
}

thread_local! {
    static CURRENT: Cell<Option<Doing>> = const { Cell::new(None) };
    /// Where this thread panicked last.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What all threads of the process are doing for a method: the threads that help them, rayon's, have no record of their own.
static GUARDED: Mutex<Guarded> = Mutex::new(Guarded { next: 0, doing: BTreeMap::new(), helpers_place: None });

struct Guarded {
    next: u64,
    doing: BTreeMap<u64, Doing>,
    /// Where a helping thread panicked last. Rayon hands the panic on to the thread that it helps, but not the place.
    helpers_place: Option<String>,
}

fn guarded() -> MutexGuard<'static, Guarded> {
    GUARDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this thread works for others, and nobody's code but theirs runs on it.
fn is_helper() -> bool {
    rayon::current_thread_index().is_some()
}

/// What this thread is doing for a method, itself or as a helper. Which thread a helper helps is not known where several are at
/// work: an agent's task is the likeliest.
fn current() -> Option<Doing> {
    CURRENT.get().or_else(|| {
        let likeliest = |doing: &&Doing| (doing.agent.is_none(), matches!(doing.what, What::Talking | What::Keeping));
        is_helper().then(|| guarded().doing.values().min_by_key(likeliest).copied()).flatten()
    })
}

/// Runs a method's code: its error or panic becomes a fault, and an exit from inside is known to the exit handler.
pub(super) fn guard<T>(doing: Doing, work: impl FnOnce() -> Result<T, BoxError>) -> Result<T, Fault> {
    let outer = CURRENT.replace(Some(doing));
    let number = {
        let mut guarded = guarded();
        guarded.next += 1;
        let number = guarded.next;
        guarded.doing.insert(number, doing);
        number
    };
    let result = std::panic::catch_unwind(AssertUnwindSafe(work));
    guarded().doing.remove(&number);
    CURRENT.set(outer);
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(doing.fault(chain(error.as_ref()))),
        Err(payload) => {
            let text = payload
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| payload.downcast_ref::<&str>().copied())
                .unwrap_or("a panic without a message");
            let place = PLACE.take().or_else(|| guarded().helpers_place.take());
            Err(doing.fault(format!("panicked at {}: {text}", place.as_deref().unwrap_or("an unknown place"))))
        }
    }
}

/// An error with its causes, in one line.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// Who is told when a method's code calls `exit`; returns when the teller has taken over, or never.
type Reporter = Box<dyn Fn(Fault) + Send>;

static ON_EXIT: Mutex<Option<Reporter>> = Mutex::new(None);

/// Keeps panics of guarded code quiet (the fault says it all), prints others, and turns an exit from guarded code into a fault.
pub(super) fn install(on_exit: Reporter) {
    static ONCE: Once = Once::new();
    *ON_EXIT.lock().unwrap_or_else(PoisonError::into_inner) = Some(on_exit);
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let place = info.location().map(ToString::to_string);
            if CURRENT.get().is_some() {
                PLACE.set(place);
            } else if current().is_some() {
                guarded().helpers_place = place;
            } else {
                print(info);
            }
        }));
        // SAFETY: registers a handler that takes no arguments and touches only statics and thread-locals without destructors
        // (rayon's number of a thread is one of them).
        unsafe { libc::atexit(at_exit) };
    });
}

extern "C" fn at_exit() {
    let Some(doing) = current() else { return };
    let fault = doing.fault("the process was ended by a call of exit");
    if let Some(report) = ON_EXIT.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
        report(fault);
    }
    // SAFETY: ends the process at once; the handlers after this one must not run in a failed job.
    unsafe { libc::_exit(EXIT_CODE) };
}
