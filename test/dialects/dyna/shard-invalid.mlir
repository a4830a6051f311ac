// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// SHARD1: no group has a negative index.
// expected-error @+1 {{expects 'group', an index into the groups of the context, not to be negative, but got -1}}
"test.op"() {shard = #dyna.shard<group = -1, rows = 257>} : () -> ()

// -----

// SHARD2: a table has rows.
// expected-error @+1 {{expects 'rows', those of the whole table, to be positive, but got 0}}
"test.op"() {shard = #dyna.shard<group = 1, rows = 0>} : () -> ()
