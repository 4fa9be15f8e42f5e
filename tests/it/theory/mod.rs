//! Methods against exact theory, a module for each method: every threshold follows from rounding or from standard errors with a stated
//! rate of false alarms, and a control that must fail stands beside every statistical test.

mod adlda;
mod bias;

mod dsgld;
mod dsgld_scale;
mod dsvgd;
mod ec_sghmc;
mod fedavg;
mod npv_and_pmd;
mod pvi;
mod svgd;
mod tuning;
