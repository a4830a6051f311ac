// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// RETURN1: as many operands as results.
dyna.layer @l(%x: tensor<?x96xf32>) -> tensor<?x96xf32> {
  // expected-error @+1 {{expects 1 operands, the results of the enclosing 'dyna.layer', but got 2}}
  dyna.return %x, %x : tensor<?x96xf32>, tensor<?x96xf32>
}

// -----

// RETURN1: of the same types.
dyna.layer @l(%x: tensor<?x96xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{expects operand #0 to have type 'tensor<?x64xf32>', that of the result of the enclosing 'dyna.layer', but got 'tensor<?x96xf32>'}}
  dyna.return %x : tensor<?x96xf32>
}

// -----

// Structure: a return outside of everything.
// expected-error @+1 {{expects parent op to be one of 'dyna.layer, dyna.model, dyna.function'}}
dyna.return
