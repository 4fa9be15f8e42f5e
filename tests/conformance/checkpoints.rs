//! Checkpoint files: complete ones are read, damaged ones are refused.

use crate::bits::agree;
use crate::roster;
use crate::subject::{Driver, Until};
use crate::suite::{Suite, same};

pub fn register(suite: &mut Suite) {
    for subject in roster() {
        suite.test(format!("checkpoint files: {}", subject.label()), move |group| {
            let path = group.folder.join("run.state");
            let saved = subject.run(Driver::Threads { threads: 1 }, None, Until::Responses(3)).ok().flatten();
            let Some(saved) = saved.map(|ran| ran.saved) else {
                return group.check(subject.label(), Err("the run could not be saved".into()));
            };
            let round_trip = subject.write(&saved, &path).and_then(|()| subject.read(&path));
            group.check(
                "a file is read back byte for byte",
                round_trip.and_then(|back| same("the bytes are equal:", &(back.as_ref() == Some(&saved)), &true)),
            );
            let refused = |bytes: &[u8]| {
                std::fs::write(&path, bytes).map_err(|error| error.to_string())?;
                match subject.read(&path) {
                    Err(cause) if cause.contains("run.state") => Ok(()),
                    Err(cause) => Err(format!("the error does not name the file: {cause}")),
                    Ok(_) => Err("it was read".into()),
                }
            };
            for cut in [0, 10, 40, saved.len() / 2, saved.len() - 1] {
                group.check(format!("truncated after {cut} bytes"), refused(&saved[..cut]));
            }
            for place in [3, 20, 60, saved.len() / 2, saved.len() - 1] {
                let mut damaged = saved.clone();
                damaged[place] ^= 4;
                group.check(format!("byte {place} damaged"), refused(&damaged));
            }
            if let Some(other) = roster().find(|other| other.name() != subject.name()) {
                let says = format!("holds a run of {} in ", subject.name());
                let result = match other.run(Driver::Threads { threads: 1 }, Some(&saved), Until::End) {
                    Err(fault) if fault.cause.contains(&says) => Ok(()),
                    Err(fault) => Err(format!("it was refused for something else: {fault}")),
                    Ok(_) => Err("it was resumed".into()),
                };
                group.check(format!("resumed as a run of {}", other.name()), result);
            }
            drop(std::fs::remove_file(&path));
            drop(std::fs::create_dir(&path));
            let result = match subject.write(&saved, &path) {
                Ok(()) => Err("a folder was written over".into()),
                Err(_) => same(
                    "the temporary file exists:",
                    &std::fs::exists(group.folder.join("run.state.partial")).ok(),
                    &Some(false),
                ),
            };
            group.check("cannot be written", result);
            drop(std::fs::remove_dir(&path));
            let nothing = subject.read(&path).and_then(|read| same("a missing file holds", &read, &None));
            group.check("no file", nothing);
        });
    }
    for subject in roster() {
        suite.test(format!("a finished run that is resumed is over at once: {}", subject.label()), move |group| {
            let result = subject.run(Driver::Threads { threads: 1 }, None, Until::End).and_then(|ran| {
                let saved = ran.map(|ran| ran.saved).unwrap_or_default();
                subject.run(Driver::Simulate { ranks: 3, threads: 1, dedicated: false }, Some(&saved), Until::End)
            });
            group.check(subject.label(), agree(subject, result.map_err(|fault| fault.to_string())));
        });
    }
}
