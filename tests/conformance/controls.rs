//! Controls of the suite: methods that break a rule must be detected.

use crate::bits::agree_with;
use crate::methods::Crooked;
use crate::resume::stopping_equals_checkpoints;
use crate::subject::{Driver, Until, conforms};
use crate::suite::Suite;

pub fn register(suite: &mut Suite) {
    suite.test("methods that break a rule are detected", |group| {
        for wrong in [Crooked::Not, Crooked::AnotherOrder, Crooked::Forgets, Crooked::SharedRandomness] {
            let subject = conforms("crooked", move || wrong);
            let threads = Driver::Threads { threads: 1 };
            let run = |saved: Option<&[u8]>, until| {
                let ran = subject.run(threads, saved, until).map_err(|fault| fault.to_string());
                ran.and_then(|ran| ran.ok_or("no outcome".into()))
            };
            let result = run(None, Until::End).and_then(|left_alone| {
                let again = run(None, Until::End)?;
                let saved = run(None, Until::Responses(3))?.saved;
                let resumed = run(Some(&saved), Until::End)?;
                let again = agree_with(&left_alone, subject.order(), Ok(Some(again))).is_ok();
                let resumed = agree_with(&left_alone, subject.order(), Ok(Some(resumed))).is_ok();
                let expected = match wrong {
                    Crooked::Not => (true, true),
                    Crooked::Forgets => (true, false),
                    Crooked::AnotherOrder | Crooked::SharedRandomness => (false, false),
                };
                crate::suite::same("(runs alike, resumes alike)", &(again, resumed), &expected)
            });
            group.check(format!("{wrong:?}"), result);
            if matches!(wrong, Crooked::Not | Crooked::Forgets) {
                let simulate = Driver::Simulate { ranks: 3, threads: 1, dedicated: false };
                let alike = stopping_equals_checkpoints(subject.as_ref(), simulate).is_ok();
                let result = crate::suite::same("stopping equals checkpoints", &alike, &(wrong == Crooked::Not));
                group.check(format!("{wrong:?}, stopped at every response"), result);
            }
        }
    });
}
