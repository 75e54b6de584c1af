"""A project: one TOML file from a look at somebody's files (look, suggest, write), and the folder in which the whole story
is carried out for it, each step once (settings, state, work)."""
