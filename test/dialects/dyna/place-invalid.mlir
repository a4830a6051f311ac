// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// PLACE1: a negative index.
// expected-error @+1 {{expects a place in 'gradient' to have an index that is not negative, but got index = -1}}
"test.op"() {place = #dyna.place<gradient, index = -1>} : () -> ()

// -----

// PLACE1: a block of bytes has no entries.
// expected-error @+1 {{expects a place in 'products' to have no index, but got index = 1}}
"test.op"() {place = #dyna.place<products, index = 1>} : () -> ()

// -----

// PLACE2: a negative offset.
// expected-error @+1 {{expects a place in 'workspace' to have offsets that are not negative, but got tq = -4}}
"test.op"() {place = #dyna.place<workspace, tq = -4>} : () -> ()

// -----

// PLACE2: an entry of an array has no offset.
// expected-error @+1 {{expects a place in 'input' to have no offset, but got constant = 64}}
"test.op"() {place = #dyna.place<input, constant = 64>} : () -> ()

// -----

// PLACE3: a column of no row.
// expected-error @+1 {{expects a place in 'products' to have a column only with a stride, neither negative, but got column = 64, stride = 0}}
"test.op"() {place = #dyna.place<products, column = 64>} : () -> ()

// -----

// PLACE3: an entry of an array is dense.
// expected-error @+1 {{expects a place in 'output' to have neither column nor stride, but got column = 0, stride = 128}}
"test.op"() {place = #dyna.place<output, stride = 128>} : () -> ()
