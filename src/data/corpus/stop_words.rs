//! English stop words.

/// The words as [`Tokenizer`](super::tokenizer::Tokenizer) returns them: `don't` becomes `don` and `t`.
pub(super) const ENGLISH: &str = "\
    a about above across after again against all almost already also although am among amongst an and another any anyone \
    anything anywhere are aren around as at be because been before behind being below between beyond both but by can cannot \
    could couldn d did didn do does doesn doing don done down during each either else etc even ever every everyone everything \
    except few for from further had hadn has hasn have haven having he her here hers herself him himself his how however i if \
    in instead into is isn it its itself just ll m many may maybe me might mine more most much must mustn my myself neither no \
    none nor not nothing now of off often on once one only or other others ought our ours ourselves out over own perhaps re s \
    same she should shouldn since so some someone something still such t than that the their theirs them themselves then there \
    therefore these they this those though through throughout to together too under unless until up upon us ve very was wasn \
    we were weren what when whenever where whether which while who whom whose why will with within without won would wouldn \
    yet you your yours yourself yourselves";
