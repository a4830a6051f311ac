// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// SEND1: a negative rank.
%x = "test.value"() : () -> tensor<?x96xf32>
// expected-error @+1 {{expects a rank and a tag that are not negative, but got rank -1 and tag 7}}
dist.send %x to -1 tag 7 : tensor<?x96xf32>

// -----

// RECV1: a negative tag.
// expected-error @+1 {{expects a rank and a tag that are not negative, but got rank 1 and tag -7}}
%x = dist.recv from 1 tag -7 : tensor<?x96xf32>
