// Package peerbench sets outlay beside the libraries that programs use in its place or
// below it: what each costs, in one run and over the same base, and what each does with
// the same scripted faults. It is a module of its own, so that who uses outlay compiles
// none of them.
//
// What was measured and observed stands in README.md beside it;
// make bench-peers measures anew and writes it there.
package peerbench
