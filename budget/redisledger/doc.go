// Package redisledger is a [budget.Ledger] that many machines share through Redis or
// Valkey: a single server, Sentinel or a cluster.
package redisledger
