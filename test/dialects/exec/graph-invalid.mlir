// RUN: dyna-opt %s -split-input-file -verify-diagnostics

// GRAPH1: an unknown key.
// expected-error @+1 {{has the key 'xp'}}
exec.graph @a "xp=2" on <dp=1, pp=1, tp=1> {
  stage ["head"]
}

// -----

// GRAPH1: the cut stands in the stages.
// expected-error @+1 {{expects a strategy without name and layers, which the symbol and the stages say, but got 'pp=2,layers=1+1'}}
exec.graph @a "pp=2,layers=1+1" on <dp=1, pp=2, tp=1> {
  stage ["embed"]
  stage ["head"]
}

// -----

// GRAPH2: another degree.
// expected-error @+1 {{expects the mesh dp=2,pp=1,tp=1 of its strategy, but got}}
exec.graph @a "dp=2" on <dp=4, pp=1, tp=1> {
  stage ["head"]
}

// -----

// GRAPH2: another order.
// expected-error @+1 {{expects the mesh pp=1,tp=1,dp=2 of its strategy, but got}}
exec.graph @a "dp=2,order=pp+tp+dp" on <dp=2, pp=1, tp=1> {
  stage ["head"]
}

// -----

// GRAPH2: an axis is missing.
// expected-error @+1 {{expects the mesh dp=2,pp=1,tp=1 of its strategy, but got}}
exec.graph @a "dp=2" on <dp=2> {
  stage ["head"]
}

// -----

// GRAPH3: too few stages.
// expected-error @+1 {{expects 2 stages (pp), but lists 1}}
exec.graph @a "pp=2" on <dp=1, pp=2, tp=1> {
  stage ["head"]
}

// -----

// GRAPH3: the order.
exec.graph @a "pp=1" on <dp=1, pp=1, tp=1> {
  parameter @wte <[[], []] on <dp=1, pp=1, tp=1>> holders [[0]]
  // expected-error @+1 {{expects stages to stand before parameters}}
  stage ["head"]
}

// -----

// GRAPH3: something else.
exec.graph @a "pp=1" on <dp=1, pp=1, tp=1> {
  stage ["head"]
  // expected-error @+1 {{is no part of an exec.graph, which lists stages and parameters}}
  builtin.module {
  }
}

// -----

// GRAPH4: a layer twice.
exec.graph @a "pp=2" on <dp=1, pp=2, tp=1> {
  // expected-note @+1 {{the first is here}}
  stage ["embed", "h.0"]
  // expected-error @+1 {{lists "h.0" a second time}}
  stage ["h.0", "head"]
}

// -----

// GRAPH4: a parameter twice.
exec.graph @a "pp=1" on <dp=1, pp=1, tp=1> {
  stage ["head"]
  // expected-note @+1 {{the first is here}}
  parameter @wte <[[], []] on <dp=1, pp=1, tp=1>> holders [[0]]
  // expected-error @+1 {{lists @wte a second time}}
  parameter @wte <[[], []] on <dp=1, pp=1, tp=1>> holders [[0]]
}

// -----

// STAGE1: no layer.
exec.graph @a "pp=1" on <dp=1, pp=1, tp=1> {
  // expected-error @+1 {{expects at least one layer}}
  stage []
}

// -----

// PARAMETER1: another mesh.
exec.graph @a "pp=1" on <dp=1, pp=1, tp=1> {
  stage ["head"]
  // expected-error @+1 {{expects a layout on the mesh of the graph}}
  parameter @wte <[[tp], []] on <tp=2>> holders [[0]]
}

// -----

// PARAMETER1: partial.
exec.graph @a "tp=2" on <dp=1, pp=1, tp=2> {
  stage ["head"]
  // expected-error @+1 {{expects a layout that is not partial}}
  parameter @wte <[[], []] partial [tp] on <dp=1, pp=1, tp=2>> holders [[0]]
}

// -----

// PARAMETER2: no such rank.
exec.graph @a "tp=2" on <dp=1, pp=1, tp=2> {
  stage ["head"]
  // expected-error @+1 {{expects holders to be ranks 0 to 1, but got 2}}
  parameter @wte <[[], []] on <dp=1, pp=1, tp=2>> holders [[0], [2]]
}

// -----

// PARAMETER2: twice.
exec.graph @a "tp=2" on <dp=1, pp=1, tp=2> {
  stage ["head"]
  // expected-error @+1 {{lists holder 1 twice}}
  parameter @wte <[[], []] on <dp=1, pp=1, tp=2>> holders [[0, 1], [1]]
}

// -----

// PARAMETER2: nobody.
exec.graph @a "tp=2" on <dp=1, pp=1, tp=2> {
  stage ["head"]
  // expected-error @+1 {{expects every list of holders to name a rank}}
  parameter @wte <[[], []] on <dp=1, pp=1, tp=2>> holders [[0], []]
}
