// RUN: dyna-opt %s -split-input-file -verify-diagnostics

// ORCHESTRATION1: something else.
exec.graph @a "dp=1" on <dp=1, pp=1, tp=1> {
  stage ["head"]
}
exec.orchestration home @a {
  // expected-error @+1 {{is no part of an exec.orchestration, which lists turns}}
  builtin.module {
  }
}

// -----

// ORCHESTRATION2: home is not the last.
exec.graph @a "dp=1" on <dp=1, pp=1, tp=1> {
  stage ["head"]
}
// expected-error @+1 {{expects the last turn to be that of home, @a}}
exec.orchestration home @a {
}

// -----

// ORCHESTRATION2: one graph has two turns.
exec.graph @a "dp=1" on <dp=1, pp=1, tp=1> {
  stage ["head"]
}
exec.orchestration home @a {
  turn @a lengths 0 to 4
  // expected-error @+1 {{gives @a a second turn}}
  turn @a lengths 5
}

// -----

// ORCHESTRATION3: two of them.
exec.graph @a "dp=1" on <dp=1, pp=1, tp=1> {
  stage ["head"]
}
// expected-note @+1 {{the first is here}}
exec.orchestration home @a {
  turn @a lengths 0
}
// expected-error @+1 {{is the second of its module}}
exec.orchestration home @a {
  turn @a lengths 0
}

// -----

// TURN1: nothing of that name.
exec.orchestration home @a {
  // expected-error @+1 {{expects @a to be an exec.graph}}
  turn @a lengths 0
}

// -----

// TURN2: the wrong way round.
exec.graph @a "dp=1" on <dp=1, pp=1, tp=1> {
  stage ["head"]
}
exec.orchestration home @a {
  // expected-error @+1 {{expects lengths from 0 on, the longest last, but got 5 to 4}}
  turn @a lengths 5 to 4
}

// -----

// TURN2: less than nothing.
exec.graph @a "dp=1" on <dp=1, pp=1, tp=1> {
  stage ["head"]
}
exec.orchestration home @a {
  // expected-error @+1 {{expects lengths from 0 on, the longest last, but got -1 to -1}}
  turn @a lengths -1
}

// -----

// STEP1: no phase.
// expected-error @+1 {{expects a phase at least}}
exec.step @s {
}

// -----

// STEP1: something else.
exec.step @s {
  // expected-error @+1 {{is no part of an exec.step, which lists phases}}
  builtin.module {
  }
}

// -----

// STEP2: a plan in two phases.
exec.plan @p model 1 target_tokens 1 {
}
exec.step @s {
  phase @p samples [0]
  // expected-error @+1 {{is of @p, as another phase is}}
  phase @p samples [1]
}

// -----

// STEP2: of two steps.
exec.plan @p model 1 target_tokens 1 {
}
exec.step @s {
  phase @p samples [0]
}
exec.step @t {
  // expected-error @+1 {{is of @p, as another phase is}}
  phase @p samples [0]
}

// -----

// PHASE1: nothing of that name.
exec.step @s {
  // expected-error @+1 {{expects @p to be an exec.plan}}
  phase @p samples [0]
}

// -----

// PHASE2: a length is missing.
exec.plan @p model 1 target_tokens 1 lengths [3, 4] {
}
exec.step @s {
  // expected-error @+1 {{has 1 samples, but @p says lengths of 2}}
  phase @p samples [0]
}

// -----

// PHASE3: less than the first.
exec.plan @p model 1 target_tokens 1 {
}
exec.step @s {
  // expected-error @+1 {{expects samples not to be negative, but got -2}}
  phase @p samples [0, -2]
}
