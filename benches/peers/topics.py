"""Topic models by mpibayes (adlda and lda) beside tomotopy, gensim and scikit-learn: seconds of training to a perplexity of held-out documents.

In a fresh virtual environment: pip install numpy h5py tomotopy gensim scikit-learn. With `mpibayes` on the PATH (source jobs/env.sh),
and a corpus that `mpibayes import` has made with documents held out:

    python benches/peers/topics.py datasets/corpus.h5 --topics 100

Everyone has the same training documents, K, alpha (of each topic) and beta (of each word), fixed, and two cores at most; each contender
is trained --repeats times, in turn (A B C A B C), each time with another seed. At each checkpoint the topics as they are then, the last
sample for those that sample, are judged by one evaluator, which is nobody's own: of each held-out document the observed tokens give
theta by a fixed point of theta_k = (alpha + sum_w n_w r_wk) / (n + K alpha) with r_wk proportional to theta_k phi_kw, and the tokens that
are scored have the probability sum_k theta_k phi_kw; perplexity is exp of minus the mean of their logarithms. Seconds are those of
training, with the topics that samplers draw to begin with: a peer's corpus in memory and evaluation are left out; those of mpibayes
count from the start of the run, reading and keeping draws included. What a sweep over all tokens is for a Gibbs sampler is a pass for
online variational inference: gensim and scikit-learn have checkpoints of their own. Nobody begins another one after --most-seconds,
but mpibayes, which is asked for all of its sweeps at once.
"""

import argparse
import math
import subprocess
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np


class Corpus:
    """The documents of a file that `mpibayes import` has made."""

    def __init__(self, path):
        self.path = Path(path).resolve()
        with h5py.File(path) as file:
            self.words = int(file["vocabulary"].attrs["words"])
            self.train = [file[f"train/{name}"][:] for name in ("indptr", "indices", "values")]
            self.test = [file[f"test/{name}"][:] for name in ("indptr", "indices", "values", "scored")]
        self.documents = len(self.train[0]) - 1
        self.tokens = int(self.train[2].sum())

    def bags(self):
        """Words and counts of each training document."""
        starts, words, counts = self.train
        for begin, end in zip(starts[:-1], starts[1:]):
            yield words[begin:end], counts[begin:end]


def perplexity(corpus, phi, alpha, steps=100):
    """Of the scored tokens, with topics phi (K x W)."""
    topics = len(phi)
    # Words that a peer has dropped or given no mass.
    phi = np.maximum(np.asarray(phi, dtype=np.float64), 1e-12)
    by_word = np.ascontiguousarray((phi / phi.sum(axis=1, keepdims=True)).T)
    starts, words, counts, scored = corpus.test
    log_likelihood, tokens = 0.0, 0
    for begin, end in zip(starts[:-1], starts[1:]):
        of_words, to_score = by_word[words[begin:end]], scored[begin:end].astype(np.float64)
        seen = counts[begin:end] - to_score
        theta = np.full(topics, 1.0 / topics)
        for _ in range(steps):
            theta = alpha + theta * ((seen / (of_words @ theta)) @ of_words)
            theta /= theta.sum()
        log_likelihood += float(to_score @ np.log(of_words @ theta))
        tokens += int(to_score.sum())
    return math.exp(-log_likelihood / tokens)


def mpibayes(method, phi=None):
    """A method on two agents. `lda` starts with burn-in, to the first checkpoint, which has no draw."""

    def train(corpus, options, seed):
        """Yields sweeps, seconds and topics (K x W) of its checkpoints."""
        every = math.gcd(*options.sweeps)
        burn_in = every if phi else 0
        setting = f'phi = "{phi}"' if phi else ""
        with tempfile.TemporaryDirectory() as folder:
            run, out = Path(folder) / "run.toml", Path(folder) / "out"
            run.write_text(
                f"""seed = {seed}
agents = 2
[data]
file = "{corpus.path}"
[model]
name = "lda"
topics = {options.topics}
alpha = {options.alpha}
beta = {options.beta}
[method]
name = "{method}"
rounds = {max(options.sweeps)}
burn_in = {burn_in}
thin = {every}
{setting}
[evaluate]
every = 0
[cluster]
threads = 2
"""
            )
            subprocess.run(["mpibayes", "run", str(run), "--output", str(out)], check=True, capture_output=True)
            with h5py.File(out / "result.h5") as file:
                at = dict(zip(file["history/step"][:].astype(int), file["history/seconds"][:]))
                variable = next(item for name, item in file["posterior"].items() if item.ndim > 2)
                # W x K: the topics of a word lie together.
                draws = variable[0].reshape(variable.shape[1], corpus.words, options.topics)
                for number, draw in enumerate(draws):
                    if (sweeps := burn_in + every * (number + 1)) in options.sweeps:
                        yield sweeps, at[sweeps], draw.T

    return train


def tomotopy(workers):
    """Collapsed Gibbs sampling on so many threads."""

    def train(corpus, options, seed):
        import tomotopy as tp

        model = tp.LDAModel(k=options.topics, alpha=options.alpha, eta=options.beta, seed=seed)
        model.optim_interval = 0
        for words, counts in corpus.bags():
            if len(words):
                model.add_doc([str(word) for word in np.repeat(words, counts)])
        begin = time.perf_counter()
        model.train(0, workers=workers)
        seconds, done = time.perf_counter() - begin, 0
        places = np.array([int(word) for word in model.used_vocabs])
        for sweeps in options.sweeps:
            begin = time.perf_counter()
            model.train(sweeps - done, workers=workers)
            seconds, done = seconds + time.perf_counter() - begin, sweeps
            phi = np.zeros((options.topics, corpus.words))
            for topic in range(options.topics):
                phi[topic, places] = model.get_topic_word_dist(topic)
            yield sweeps, seconds, phi

    return train


def gensim(workers):
    """Online variational inference; with two workers two processes beside the one that collects."""

    def train(corpus, options, seed):
        from gensim.models import LdaModel, LdaMulticore

        bags = [[(int(word), int(count)) for word, count in zip(*bag)] for bag in corpus.bags()]
        names = {word: str(word) for word in range(corpus.words)}
        settings = {
            "id2word": names,
            "num_topics": options.topics,
            "alpha": np.full(options.topics, options.alpha, dtype=np.float32),
            "eta": options.beta,
            "eval_every": None,
            "random_state": seed,
        }
        model = LdaModel(**settings) if workers == 1 else LdaMulticore(workers=workers, **settings)
        seconds, done = 0.0, 0
        for passes in options.passes:
            begin = time.perf_counter()
            for _ in range(passes - done):
                model.update(bags)
            seconds, done = seconds + time.perf_counter() - begin, passes
            yield passes, seconds, model.get_topics()

    return train


def scikit_learn(corpus, options, seed):
    """Online variational inference in two processes."""
    from scipy.sparse import csr_matrix
    from sklearn.decomposition import LatentDirichletAllocation

    starts, words, counts = corpus.train
    rows = csr_matrix((counts, words.astype(np.int32), starts.astype(np.int64)), shape=(corpus.documents, corpus.words))
    model = LatentDirichletAllocation(
        options.topics,
        doc_topic_prior=options.alpha,
        topic_word_prior=options.beta,
        total_samples=corpus.documents,
        learning_method="online",
        n_jobs=2,
        random_state=seed,
    )
    batch, seconds, done = 2048, 0.0, 0
    for passes in options.passes:
        begin = time.perf_counter()
        for _ in range(passes - done):
            for first in range(0, corpus.documents, batch):
                model.partial_fit(rows[first : first + batch])
        seconds, done = seconds + time.perf_counter() - begin, passes
        yield passes, seconds, model.components_


CONTENDERS = {
    "adlda, 2 agents": mpibayes("adlda"),
    "lda, collapsed": mpibayes("lda", "collapsed"),
    "lda, drawn": mpibayes("lda", "drawn"),
    "tomotopy, 2 workers": tomotopy(2),
    "tomotopy, 1 worker": tomotopy(1),
    "gensim LdaMulticore": gensim(2),
    "gensim LdaModel": gensim(1),
    "scikit-learn": scikit_learn,
}


def settings():
    """What was typed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: sorted({int(number) for number in text.split(",")})
    parser.add_argument("corpus", help="a corpus file of mpibayes with documents held out")
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--alpha", type=float, default=0.1, help="of each topic of a document")
    parser.add_argument("--beta", type=float, default=0.01, help="of each word of a topic")
    parser.add_argument("--sweeps", type=numbers, default=[10, 20, 30, 40, 60, 80, 120, 160, 240, 320], help="checkpoints of samplers")
    parser.add_argument("--passes", type=numbers, default=[1, 2, 4, 8], help="checkpoints of variational inference")
    parser.add_argument("--most-seconds", type=float, default=120.0, help="no checkpoint is begun after so long")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--only", default="", help="contenders whose names contain one of these, separated by commas")
    return parser.parse_args()


def reached(points, target):
    """Seconds to the first checkpoint at or below a perplexity."""
    return next((seconds for _, seconds, found in points if found <= target), None)


def main():
    options = settings()
    corpus = Corpus(options.corpus)
    print(f"{corpus.documents} documents, {corpus.tokens} tokens, W = {corpus.words}, K = {options.topics}, ", end="")
    print(f"alpha = {options.alpha}, beta = {options.beta}")
    chosen = [name for name in CONTENDERS if any(part in name for part in options.only.split(","))]
    found = {name: [] for name in chosen}
    print(f"{'':22} {'repeat':>6} {'sweeps':>6} {'seconds':>8} {'perplexity':>10} {'M tokens/s':>10}")
    for repeat in range(options.repeats):
        for name in chosen:
            points = []
            try:
                for sweeps, seconds, phi in CONTENDERS[name](corpus, options, repeat + 1):
                    points.append((sweeps, seconds, perplexity(corpus, phi, options.alpha)))
                    rate = corpus.tokens * sweeps / seconds / 1e6
                    print(f"{name:22} {repeat + 1:6} {sweeps:6} {seconds:8.2f} {points[-1][2]:10.1f} {rate:10.2f}", flush=True)
                    if seconds > options.most_seconds:
                        break
            except (ImportError, OSError, subprocess.CalledProcessError) as error:
                print(f"{name:22} {repeat + 1:6} left out: {error}")
            found[name].append(points)
    peer = found.get("tomotopy, 2 workers", [])
    for sweeps in (80, 320):
        targets = [perplexity for points in peer for at, _, perplexity in points if at == sweeps]
        if not targets:
            continue
        target = sum(targets) / len(targets)
        print(f"\nseconds to {target:.1f}, the mean perplexity of tomotopy with 2 workers after {sweeps} sweeps (at the first checkpoint there)")
        for name, repeats in found.items():
            times = [reached(points, target) for points in repeats]
            print(f"{name:22} " + "  ".join("   never" if seconds is None else f"{seconds:8.2f}" for seconds in times))


if __name__ == "__main__":
    main()
