// RUN: relax-opt %s --pretty --split-input-file --verify-diagnostics

// expected-error @below {{'func.func' op has 'graph.facts' that is "k"; expects an array of strings}}
func.func private @facts() attributes {graph.facts = "k"}

// -----

// expected-error @below {{'func.func' op has 'sym_name' with "\FF", which is not UTF-8 text}}
func.func private @"\FF"()
