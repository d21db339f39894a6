// Package redislimiter is a [throttle.Limiter] that many processes share through Redis or
// Valkey: a single server, Sentinel or a cluster.
package redislimiter
