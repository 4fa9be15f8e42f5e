//! AdaGrad as the Stein papers use it: an exponential window started at the first squared gradient.
