//! Invalid requests: the run ends with an error that names the mistake.

use crate::methods::{Post, Scripted};
use crate::subject::{Driver, TestRecorder, Until, carry};
use crate::suite::Suite;
use std::sync::Arc;

pub fn register(suite: &mut Suite) {
    suite.test("invalid requests are refused", |group| {
        let all: &[u32] = &[0, 1, 2];
        let cases: [(&str, Vec<Post>, &[&str]); 12] = [
            ("a transfer that was not promised", vec![Post::to(&[1]).with_transfer()], &["agent 1", "none was promised"]),
            (
                "a transfer used twice",
                vec![Post::to(&[0]).sum_to(&[1]), Post::to(&[1]).with_transfer(), Post::to(&[1]).with_transfer()],
                &["agent 1", "none was promised"],
            ),
            (
                "a transfer promised to one of two members",
                vec![Post::to(&[0]).sum_to(&[0, 1]), Post::to(all).with_transfer()],
                &["agent 2", "none was promised"],
            ),
            (
                "two agents that wait for each other",
                vec![Post::to(&[0]).with_transfer().sum_to(&[1]), Post::to(&[1]).with_transfer().sum_to(&[0])],
                &["agent 0", "none was promised"],
            ),
            (
                "a body and a transfer",
                vec![Post::to(&[0]).sum_to(&[1]), Post::to(&[1]).with_transfer().with(3)],
                &["a body and a transfer"],
            ),
            ("a member twice", vec![Post::to(&[0, 2, 0])], &["agent 0", "twice", "members"]),
            ("a member that does not exist", vec![Post::to(&[0, 3])], &["agent 3", "members", "3 agents"]),
            ("no member", vec![Post::to(&[])], &["no members"]),
            ("a receiver twice", vec![Post::to(all).sum_to(&[1, 1])], &["agent 1", "twice", "receivers"]),
            ("a receiver that does not exist", vec![Post::to(all).sum_to(&[7])], &["agent 7", "receivers", "3 agents"]),
            ("no receiver", vec![Post::to(all).sum_to(&[])], &["no receivers"]),
            ("bodies of one sum with different lengths", vec![Post::to(&[0, 2]).sum()], &["agent 0", "5", "agent 2", "7"]),
        ];
        let layouts = [
            Driver::Threads { threads: 1 },
            Driver::Threads { threads: 2 },
            Driver::Simulate { ranks: 3, threads: 1, dedicated: false },
        ];
        for (case, posts, words) in &cases {
            for driver in layouts {
                group.check(case, says(vec![5, 5, 7], posts, driver, words));
            }
        }
        // One body is small enough to be sent whole and one is sliced: the agents disagree on which ranks add.
        for (lengths, words) in [
            (vec![100, 100, 9000], ["agent 0", "100", "agent 2", "9000"]),
            (vec![9000, 9000, 9001], ["agent 0", "9000", "agent 2", "9001"]),
        ] {
            for ranks in [1, 2, 3] {
                let driver = Driver::Simulate { ranks, threads: 1, dedicated: false };
                group.check(
                    format!("a sum of {lengths:?} numbers over {ranks} ranks"),
                    says(lengths.clone(), &[Post::to(&[0, 2]).sum()], driver, &words),
                );
            }
        }
        // The control: the same requests in a sound order.
        let sound = [Post::to(&[0]).sum_to(&[1]), Post::to(&[1]).with_transfer().sum_to(&[0]), Post::to(&[0]).with_transfer()];
        for driver in layouts {
            let ran = run(vec![5; 3], &sound, driver);
            group.check("a sound script", ran.map_or_else(Err, |()| Ok(())));
        }
    });
}

fn run(lengths: Vec<usize>, posts: &[Post], driver: Driver) -> Result<(), String> {
    let method = Scripted { agents: 3, posts: posts.to_vec(), lengths };
    carry(Arc::new(method), driver, None, &mut TestRecorder::new(Until::End)).map(drop).map_err(|fault| fault.to_string())
}

fn says(lengths: Vec<usize>, posts: &[Post], driver: Driver, words: &[&str]) -> Result<(), String> {
    match run(lengths, posts, driver) {
        Ok(()) => Err("it was accepted".into()),
        Err(text) => match words.iter().find(|word| !text.contains(**word)) {
            Some(word) => Err(format!("the message lacks {word:?}: {text}")),
            None => Ok(()),
        },
    }
}
