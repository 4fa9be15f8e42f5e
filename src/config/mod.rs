//! What was typed (TOML and overrides) becomes a validated run.
